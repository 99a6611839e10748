package codec

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// maxKept is the largest value, in encoded bytes, after which the scratch
// space is kept for reuse: one huge state must not pin its buffers for ever.
const maxKept = 1 << 20

// packed is the MessagePack codec of T.
type packed[T any] struct {
	root *node
	// own: some part encodes itself, so what it wrote is checked.
	own  bool
	pool sync.Pool // of *packState[T]
}

// packState is what one Append or Decode needs. The value lives in it so that
// reflection can address it without an allocation per call.
type packState[T any] struct {
	val T
	rv  reflect.Value // of val
	p   packer
}

func newPacked[T any](t reflect.Type) (*packed[T], error) {
	c := &compiler{root: t, nodes: map[reflect.Type]*node{}}
	root, err := c.compile(t, "")
	if err != nil {
		return nil, err
	}
	q := &packed[T]{root: root, own: c.own}
	q.pool.New = func() any {
		s := &packState[T]{}
		s.rv = reflect.ValueOf(&s.val).Elem()
		s.p.enc = msgpack.NewEncoder(&s.p)
		s.p.dec = msgpack.NewDecoder(&s.p.r)
		return s
	}
	return q, nil
}

func (c *packed[T]) ID() string { return "msgpack" }

func (c *packed[T]) Append(dst []byte, v T) ([]byte, error) {
	s := c.pool.Get().(*packState[T])
	s.val = v
	s.p.buf, s.p.depth = dst, 0
	s.p.resetEncoder()
	err := c.root.enc(&s.p, s.rv)
	out := s.p.buf
	if err == nil && c.own {
		var end int
		if end, err = scan(out, len(dst), 0); err == nil && end != len(out) {
			err = fmt.Errorf("%w: %d bytes written after the value", ErrCorrupt, len(out)-end)
		}
	}
	c.put(s, len(out)-len(dst))
	if err != nil {
		return dst, fmt.Errorf("codec: encode %s: %w", reflect.TypeFor[T](), err)
	}
	return out, nil
}

func (c *packed[T]) Decode(src []byte) (T, error) {
	v, err := c.decode(src)
	if err != nil {
		var zero T
		return zero, fmt.Errorf("codec: decode %s: %w", reflect.TypeFor[T](), err)
	}
	return v, nil
}

func (c *packed[T]) decode(src []byte) (v T, err error) {
	end, err := scan(src, 0, 0)
	if err != nil {
		return v, err
	}
	if end < len(src) {
		return v, fmt.Errorf("%w: %d bytes after the value", ErrCorrupt, len(src)-end)
	}
	s := c.pool.Get().(*packState[T])
	s.p.src = src
	s.p.r.Reset(src)
	s.p.dec.Reset(&s.p.r)
	err = c.root.dec(&s.p, s.rv)
	if err == nil && s.p.r.Len() > 0 {
		err = fmt.Errorf("%w: %d bytes not used", ErrCorrupt, s.p.r.Len())
	}
	if err == nil {
		v = s.val
	}
	c.put(s, len(src))
	return v, err
}

// put clears the state, so that every decode begins with a zero target and no
// user value is kept alive, and keeps it for reuse.
func (c *packed[T]) put(s *packState[T], size int) {
	var zero T
	s.val = zero
	s.p.buf, s.p.src = nil, nil
	s.p.r.Reset(nil)
	s.p.spans = s.p.spans[:0]
	if size <= maxKept {
		c.pool.Put(s)
	}
}

// packer is the part of the state that does not depend on T: the writer under
// the encoder and the reader under the decoder.
type packer struct {
	enc   *msgpack.Encoder
	buf   []byte
	depth int
	spans []span // entries of the maps being written, innermost last
	tmp   []byte

	dec *msgpack.Decoder
	r   bytes.Reader
	src []byte
}

// Write appends b to the output.
func (p *packer) Write(b []byte) (int, error) {
	p.buf = append(p.buf, b...)
	return len(b), nil
}

// WriteByte appends c to the output.
func (p *packer) WriteByte(c byte) error {
	p.buf = append(p.buf, c)
	return nil
}

// resetEncoder gives the encoder its settings. Sorting is for what self-encoding
// types hand to the library; plans sort by themselves.
func (p *packer) resetEncoder() {
	p.enc.Reset(p)
	p.enc.SetSortMapKeys(true)
}

func (p *packer) pos() int { return len(p.src) - p.r.Len() }

func (p *packer) seek(pos int) { _, _ = p.r.Seek(int64(pos), io.SeekStart) }

// peek is the code of the next value, 0xc1 (which no value has) at the end.
func (p *packer) peek() byte {
	if i := p.pos(); i < len(p.src) {
		return p.src[i]
	}
	return 0xc1
}

// enter counts a level of nesting while a value is written; leave it with
// p.depth--.
func (p *packer) enter() error {
	if p.depth >= maxDepth {
		return ErrDepth
	}
	p.depth++
	return nil
}
