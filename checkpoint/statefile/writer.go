package statefile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/zeebo/xxh3"
)

// writer writes head, frames and footer; it knows bytes, not rows.
type writer struct {
	w       io.Writer
	info    Info
	sum     Summary
	file    *xxh3.Hasher
	content contentSum
	comp    compressor
	head    [frameLen]byte
}

// begin writes the head.
func (w *writer) begin(out io.Writer, info Info) error {
	if err := info.validate(); err != nil {
		return err
	}
	if w.file == nil {
		w.file = xxh3.New()
	}
	w.file.Reset()
	w.w, w.info, w.sum = out, info, Summary{}
	w.content.begin(&w.info)
	b := append(make([]byte, 0, 256), magic...)
	b = binary.LittleEndian.AppendUint32(b, Newest)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = info.appendFields(b)
	binary.LittleEndian.PutUint32(b[prefixLen-4:], uint32(len(b)-prefixLen))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return w.write(b)
}

func (w *writer) write(b []byte) error {
	_, _ = w.file.Write(b)
	w.sum.Size += int64(len(b))
	n, err := w.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("statefile: write the %v of version %d of operator %q, partition %d: %w",
			w.info.Kind, w.info.Version, w.info.Operator, w.info.Partition, err)
	}
	return nil
}

// frame writes a block of count rows.
func (w *writer) frame(raw []byte, count, tombstones int) error {
	body, err := w.comp.compress(w.info.Compression, raw)
	if err != nil {
		return err
	}
	h := &w.head
	binary.LittleEndian.PutUint32(h[0:], uint32(count))
	binary.LittleEndian.PutUint32(h[4:], uint32(len(raw)))
	binary.LittleEndian.PutUint32(h[8:], uint32(len(body)))
	sum := sumOf(raw)
	copy(h[12:], sum[:])
	binary.LittleEndian.PutUint32(h[28:], crc32.Update(crc32.Checksum(h[:28], castagnoli), castagnoli, body))
	w.content.frame(h)
	w.sum.Records += int64(count)
	w.sum.Tombstones += int64(tombstones)
	w.sum.RawBytes += int64(len(raw))
	if err := w.write(h[:]); err != nil {
		return err
	}
	err = w.write(body)
	w.comp.buf = keep(w.comp.buf)
	return err
}

// end writes the footer.
func (w *writer) end() (Summary, error) {
	s := &w.sum
	s.Content = w.content.end(uint64(s.Records))
	s.Chain = w.info.Chain
	if w.info.Kind == Delta {
		s.Chain = Chain(w.info.Chain, s.Content)
	}
	size := s.Size + footerLen
	b := appendFooter(make([]byte, 0, footerLen), s, size)
	start := s.Size
	if err := w.write(b); err != nil { // in two pieces, as the sum covers the first
		return Summary{}, err
	}
	s.Checksum = w.file.Sum128().Bytes()
	b = append(b, s.Checksum[:]...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if err := w.write(b[s.Size-start:]); err != nil {
		return Summary{}, err
	}
	w.w = nil
	return *s, nil
}

// appendFooter appends the footer up to the file sum.
func appendFooter(b []byte, s *Summary, size int64) []byte {
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, v := range []int64{s.Records, s.Tombstones, s.RawBytes, size} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	b = append(b, s.Content[:]...)
	return append(b, s.Chain[:]...)
}
