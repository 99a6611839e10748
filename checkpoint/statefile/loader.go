package statefile

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"unsafe"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/guard"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/statemap"
)

// Loader reads files into versions of a statemap. It is reused from file to
// file, keeps its buffers (about 200 KiB and the largest block), and belongs to
// one goroutine at a time.
type Loader[K comparable, S any] struct {
	key    *codec.Key[K]
	state  codec.Codec[S]
	keyID  string
	text   bool // K is a string kind: its bytes are the key
	frame  Frame
	block  Block
	rows   statemap.Block[K, S]
	keys   [statemap.BlockSize]K
	hashes [statemap.BlockSize]uint64
	at     int // the entry whose state a codec or migration of the user decodes, else -1
}

// NewLoader makes a loader from the encodings of keys and states.
func NewLoader[K comparable, S any](key *codec.Key[K], state codec.Codec[S]) *Loader[K, S] {
	return &Loader[K, S]{key: key, state: state, keyID: KeyID[K](), text: reflect.TypeFor[K]().Kind() == reflect.String}
}

// Load applies a file to m, an open version that nobody else uses: a snapshot
// fills an empty one, a delta changes what its predecessors left. The codecs of
// want are filled in. If it fails, part of the file is in m, which is to be
// given up (Abort): only after nil is m the version. Errors: those of
// NewReader and Reader.Next, *DecodeError for a state on which the codec, or a
// migration in it, fails or panics, and those of the map.
func (l *Loader[K, S]) Load(r io.Reader, path string, want Want, m *statemap.Map[K, S]) (Summary, error) {
	if want.Kind == Snapshot && m.Len() > 0 {
		return Summary{}, fmt.Errorf("statefile: load %s: a snapshot needs an empty map, this one has %d keys", path, m.Len())
	}
	want.KeyCodec, want.StateCodec = l.keyID, l.state.ID()
	rd, err := NewReader(r, path, &want)
	if err != nil {
		return Summary{}, err
	}
	tombs := int64(0)
	for {
		err := rd.Next(&l.frame)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = l.block.Decode(&l.frame)
		}
		if err == nil {
			err = l.apply(m)
		}
		if err != nil {
			return Summary{}, err
		}
		tombs += int64(l.block.tombs)
	}
	sum := rd.Summary()
	if tombs != sum.Tombstones {
		return Summary{}, rd.at.corrupt(sum.Size, fmt.Sprintf("its footer counts %d tombstones of %d", sum.Tombstones, tombs), nil)
	}
	if n := int64(m.Len()); want.Kind == Snapshot && n != sum.Records {
		return Summary{}, rd.at.corrupt(sum.Size, fmt.Sprintf("its %d entries have %d distinct keys", sum.Records, n), nil)
	}
	return sum, nil
}

// apply puts the block into the map, in the map's own blocks: the cache misses
// of their lookups overlap.
func (l *Loader[K, S]) apply(m *statemap.Map[K, S]) (err error) {
	b := &l.block
	l.at = -1
	defer func() {
		if l.at < 0 {
			return // it is not the user's
		}
		if v := recover(); v != nil {
			err = l.failed(l.at, guard.Error(v))
		}
	}()
	for from := 0; from < b.count; from += statemap.BlockSize {
		n := min(statemap.BlockSize, b.count-from)
		for i := range n {
			k, err := l.keyOf(b.Key(from + i))
			if err != nil {
				return l.frame.corrupt(fmt.Sprintf("key %d of the block cannot be decoded", from+i), err)
			}
			l.keys[i], l.hashes[i] = k, m.Hash(k)
		}
		if err := m.Resolve(&l.rows, l.hashes[:n], l.keys[:n]); err != nil {
			return err
		}
		for i := range n {
			if b.Removed(from + i) {
				l.rows.Delete(i)
				continue
			}
			var s S
			if bytes, ok := b.State(from + i); ok {
				l.at = from + i
				s, err = l.state.Decode(bytes)
				l.at = -1
				switch {
				case errors.Is(err, codec.ErrCorrupt):
					return l.frame.corrupt(fmt.Sprintf("state %d of the block cannot be decoded", from+i), err)
				case err != nil:
					return l.failed(from+i, err)
				}
			}
			l.rows.Set(i, s, b.Time(from+i))
		}
		if err := m.Apply(&l.rows); err != nil {
			return err
		}
	}
	return nil
}

// failed makes the error of an entry's state: the block's checksum is right, so its
// bytes are what was written, and the fault is the decoder's.
func (l *Loader[K, S]) failed(entry int, err error) error {
	if sabotage.On("decode-is-damage") {
		return l.frame.corrupt(fmt.Sprintf("state %d of the block cannot be decoded", entry), err)
	}
	at, key := l.frame.at, l.block.Key(entry)
	text, jerr := l.key.Schema().AppendJSON(nil, key)
	if jerr != nil {
		text = fmt.Appendf(nil, "%x", key)
	}
	return &DecodeError{Path: at.path, Operator: at.operator, Partition: at.partition, Version: at.version, Key: string(text), Err: err}
}

// keyOf gives the key of canonical bytes. A string is a view of them: the map
// copies it, and only if it is new.
func (l *Loader[K, S]) keyOf(b []byte) (K, error) {
	if !l.text {
		return l.key.Decode(b)
	}
	s := unsafe.String(unsafe.SliceData(b), len(b))
	return *(*K)(unsafe.Pointer(&s)), nil
}
