package statefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/zeebo/xxh3"
)

// Reader reads a file frame by frame and checks it. It belongs to one
// goroutine; the frames it fills may be decoded by others.
type Reader struct {
	r       io.Reader
	at      place
	want    *Want
	info    Info
	sum     Summary // what was counted; whole once done
	off     int64
	file    *xxh3.Hasher
	content contentSum
	err     error // what Next returned last
}

// place says which file it is, for errors.
type place struct {
	path, operator string
	partition      int
	version        int64
}

func (p *place) corrupt(off int64, reason string, cause error) error {
	return &CorruptError{Path: p.path, Operator: p.operator, Partition: p.partition, Version: p.version,
		Offset: off, Reason: reason, Err: cause}
}

// NewReader reads and checks the head of a file. path is only named in errors.
// want says which file it must be; nil stands for any. r is read in pieces of
// a block. Errors: *CorruptError, *FormatError, *MismatchError, those of r.
func NewReader(r io.Reader, path string, want *Want) (*Reader, error) {
	rd := &Reader{r: r, at: place{path: path}, want: want, file: xxh3.New()}
	if want != nil {
		rd.at = place{path, want.Operator, want.Partition, want.Version}
	}
	if err := rd.readHead(); err != nil {
		return nil, err
	}
	if want == nil {
		rd.at = place{path, rd.info.Operator, rd.info.Partition, rd.info.Version}
	} else if err := want.checkHead(path, &rd.info); err != nil {
		return nil, err
	}
	rd.content.begin(&rd.info)
	return rd, nil
}

// Info is what the head says.
func (r *Reader) Info() Info { return r.info }

// Summary is what the footer says, once Next has returned io.EOF.
func (r *Reader) Summary() Summary { return r.sum }

func (r *Reader) readHead() error {
	var prefix [prefixLen]byte
	if _, err := r.fill(prefix[:]); err != nil {
		return err
	}
	if string(prefix[:len(magic)]) != magic {
		return r.at.corrupt(0, "it does not begin as a state file", nil)
	}
	format := binary.LittleEndian.Uint32(prefix[len(magic):])
	n := binary.LittleEndian.Uint32(prefix[prefixLen-4:])
	if n > maxFields {
		return r.at.corrupt(prefixLen-4, fmt.Sprintf("its head has %d bytes, more than %d", n, maxFields), nil)
	}
	b := make([]byte, n+4)
	if _, err := r.fill(b); err != nil {
		return err
	}
	fields := b[:n]
	if crc := crc32.Update(crc32.Checksum(prefix[:], castagnoli), castagnoli, fields); crc != binary.LittleEndian.Uint32(b[n:]) {
		return r.at.corrupt(0, "the checksum of its head differs", nil)
	}
	if format > Newest {
		return &FormatError{Path: r.at.path, Format: int64(format), Newest: Newest}
	}
	if format == 0 {
		return r.at.corrupt(int64(len(magic)), "there is no format 0", nil)
	}
	info, err := parseFields(fields)
	if err != nil {
		return r.at.corrupt(prefixLen, "its head cannot be read", err)
	}
	r.info = info
	return nil
}

// fill reads all of b, and says how much came.
func (r *Reader) fill(b []byte) (int, error) {
	n, err := io.ReadFull(r.r, b)
	_, _ = r.file.Write(b[:n])
	r.off += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return n, r.at.corrupt(r.off, "it is cut off", nil)
	}
	if err != nil {
		return n, fmt.Errorf("statefile: read %s at byte %d: %w", r.at.path, r.off, err)
	}
	return n, nil
}

// Next reads the next frame into f, whose buffer is reused, and compares its
// checksum. After the last one it checks the footer and the end of the file and
// returns io.EOF: only then is the file known to be whole. Errors:
// *CorruptError, *MismatchError, those of the reader.
func (r *Reader) Next(f *Frame) error {
	if r.err == nil {
		r.err = r.next(f)
	}
	return r.err
}

func (r *Reader) next(f *Frame) error {
	f.at, f.info, f.offset = &r.at, &r.info, r.off
	n, err := r.fill(f.head[:])
	if (n == 0 || err == nil && f.count() == 0) && sabotage.On("footer-not-checked") {
		return io.EOF
	}
	if err != nil {
		return err
	}
	if f.count() == 0 {
		return r.footer(f.head[:])
	}
	if err := f.checkHead(); err != nil {
		return err
	}
	if err := r.body(f); err != nil {
		return err
	}
	if crc := crc32.Update(crc32.Checksum(f.head[:28], castagnoli), castagnoli, f.body); crc != binary.LittleEndian.Uint32(f.head[28:]) {
		return f.corrupt("the checksum of the block differs", nil)
	}
	r.content.frame(&f.head)
	r.sum.Records += int64(f.count())
	r.sum.RawBytes += int64(f.rawLen())
	return nil
}

// body reads the body. Its length is not believed at once: the buffer grows as
// the bytes come.
func (r *Reader) body(f *Frame) error {
	n, at := f.bodyLen(), 0
	f.body = keep(f.body)[:0]
	for at < n {
		end := min(n, max(cap(f.body), 2*at, 256<<10))
		if end > cap(f.body) {
			f.body = append(make([]byte, 0, end), f.body...)
		}
		f.body = f.body[:end]
		if _, err := r.fill(f.body[at:]); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// footer checks the footer, whose first bytes were read as a frame's head.
func (r *Reader) footer(start []byte) error {
	at := r.off - int64(len(start))
	b := make([]byte, footerLen)
	copy(b, start)
	// The last bytes are not part of the sum they hold.
	if _, err := r.fill(b[len(start):fileSumAt]); err != nil {
		return err
	}
	sum := Sum(r.file.Sum128().Bytes())
	if _, err := r.fill(b[fileSumAt:]); err != nil {
		return err
	}
	if crc32.Checksum(b[:footerLen-4], castagnoli) != binary.LittleEndian.Uint32(b[footerLen-4:]) {
		return r.at.corrupt(at, "the checksum of its footer differs", nil)
	}
	got := Summary{Content: r.content.end(uint64(r.sum.Records)), Chain: r.info.Chain, Checksum: sum, Size: r.off,
		Records: r.sum.Records, RawBytes: r.sum.RawBytes, Tombstones: int64(binary.LittleEndian.Uint64(b[12:]))}
	if r.info.Kind == Delta {
		got.Chain = Chain(r.info.Chain, got.Content)
	}
	if string(append(appendFooter(nil, &got, got.Size), sum[:]...)) != string(b[:footerLen-4]) {
		return r.at.corrupt(at, "counts or sums of its footer differ from its blocks", nil)
	}
	if got.Tombstones < 0 || got.Tombstones > got.Records || got.Tombstones > 0 && r.info.Kind != Delta {
		return r.at.corrupt(at, fmt.Sprintf("its footer counts %d tombstones", got.Tombstones), nil)
	}
	var one [1]byte
	switch n, err := io.ReadFull(r.r, one[:]); {
	case n > 0:
		return r.at.corrupt(r.off, "bytes follow its end", nil)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("statefile: read the end of %s: %w", r.at.path, err)
	}
	r.sum = got
	if r.want != nil {
		if err := r.want.checkSums(r.at.path, &got); err != nil {
			return err
		}
	}
	return io.EOF
}
