package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec numbers of a batch's attributes.
const (
	codecGzip = 1 + iota
	codecSnappy
	codecLZ4
	codecZstd
)

// zstdWindow is the window that every decompressor must take (RFC 8878); encoders
// name one that is larger than what they have. It is how far a zstd frame is inflated
// before it is too large, where MaxBatchBytes is less.
const zstdWindow = 8 << 20

// keepScratch is the largest scratch buffer that stays for the next answer.
const keepScratch = 4 << 20

// inflater decompresses batches. It keeps its tables and a scratch buffer.
type inflater struct {
	max     int
	scratch []byte
	src     bytes.Reader
	gzip    *gzip.Reader
	lz4     *lz4.Reader
	zstd    *zstd.Decoder
	zstdMax int // the limit that zstd was made with
}

func (z *inflater) reset(max int) {
	z.max = max
	z.src.Reset(nil) // the last answer
	if cap(z.scratch) > keepScratch {
		z.scratch = nil
	}
}

// inflate returns the decompressed bytes in a buffer of their own: records keep
// slices of it.
func (z *inflater) inflate(codec int, src []byte) ([]byte, error) {
	out, err := z.scratch[:0], error(nil)
	switch codec {
	case codecGzip:
		out, err = z.inflateGzip(out, src)
	case codecSnappy:
		out, err = z.inflateSnappy(out, src)
	case codecLZ4:
		if z.lz4 == nil {
			z.lz4 = lz4.NewReader(nil)
		}
		z.src.Reset(src)
		z.lz4.Reset(&z.src)
		out, err = z.readAll(out, z.lz4)
	case codecZstd:
		out, err = z.inflateZstd(out, src)
	default:
		return nil, fmt.Errorf("%w: codec %d is not known", ErrCorrupt, codec)
	}
	if err != nil {
		return nil, err
	}
	z.scratch = out[:0]
	return append(make([]byte, 0, len(out)), out...), nil
}

func (z *inflater) inflateGzip(dst, src []byte) ([]byte, error) {
	z.src.Reset(src)
	var err error
	if z.gzip == nil {
		z.gzip, err = gzip.NewReader(&z.src)
	} else {
		err = z.gzip.Reset(&z.src)
	}
	if err != nil {
		return nil, err
	}
	return z.readAll(dst, z.gzip)
}

// readAll appends what r gives to dst, at most z.max bytes.
func (z *inflater) readAll(dst []byte, r io.Reader) ([]byte, error) {
	if cap(dst) == 0 {
		dst = make([]byte, 0, min(64<<10, z.max+1))
	}
	for {
		if len(dst) == cap(dst) {
			bigger := make([]byte, len(dst), min(2*cap(dst), z.max+1))
			copy(bigger, dst)
			dst = bigger
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst) > z.max:
			return nil, ErrTooLarge
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return nil, err
		}
	}
}

// xerial is how the Java client frames snappy: a magic, two version numbers, then
// blocks, each after its length.
const (
	xerialMagic  = "\x82SNAPPY\x00"
	xerialHeader = 16
)

func (z *inflater) inflateSnappy(dst, src []byte) ([]byte, error) {
	if !bytes.HasPrefix(src, []byte(xerialMagic)) {
		return z.snappyBlock(dst, src)
	}
	if len(src) < xerialHeader {
		return nil, io.ErrUnexpectedEOF
	}
	for src = src[xerialHeader:]; len(src) > 0; {
		if len(src) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		n := int64(binary.BigEndian.Uint32(src))
		if src = src[4:]; n > int64(len(src)) {
			return nil, io.ErrUnexpectedEOF
		}
		var err error
		if dst, err = z.snappyBlock(dst, src[:n]); err != nil {
			return nil, err
		}
		src = src[n:]
	}
	return dst, nil
}

func (z *inflater) snappyBlock(dst, src []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	at := len(dst)
	if n > z.max-at {
		return nil, ErrTooLarge
	}
	if n > cap(dst)-at {
		bigger := make([]byte, at, min(max(2*cap(dst), at+n), z.max))
		copy(bigger, dst)
		dst = bigger
	}
	got, err := snappy.Decode(dst[at:at+n], src)
	if err != nil {
		return nil, err
	}
	if len(got) != n {
		return nil, snappy.ErrCorrupt
	}
	return dst[:at+n], nil
}

func (z *inflater) inflateZstd(dst, src []byte) ([]byte, error) {
	most := windowFor(uint64(max(z.max, zstdWindow)))
	if z.zstd == nil || z.zstdMax != z.max {
		// The limit is for the output, and for the windows that frames may name.
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(most.size()),
			zstd.WithDecoderMaxWindow(most.size()))
		if err != nil {
			return nil, err
		}
		z.zstd, z.zstdMax = r, z.max
	}
	out, err := z.zstd.DecodeAll(src, dst)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		out, err = z.zstd.DecodeAll(narrowed(src, most), dst)
	}
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || err == nil && len(out) > z.max {
		err = ErrTooLarge
	}
	return out, err
}

// inflateError says which batch cannot be inflated, and why.
func (d *Decoder) inflateError(codec uint16, size int, err error) error {
	if errors.Is(err, ErrTooLarge) {
		return d.fail(ErrTooLarge, "its %d bytes inflate to more than %d: raise MaxBatchBytes", size, d.max)
	}
	name := "unknown codec"
	if names := [...]string{"", "gzip", "snappy", "lz4", "zstd"}; int(codec) < len(names) {
		name = names[codec]
	}
	return d.fail(ErrCorrupt, "%s: %v", name, err)
}
