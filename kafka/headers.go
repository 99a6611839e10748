package kafka

import "github.com/statemill/statemill/kafka/internal/batch"

// headers makes Header slices. They are cut from larger ones, and the keys, of
// which a topic has few, are shared, so that a record with headers costs next to no
// allocation.
type headers struct {
	free []Header
	keys map[string]string
}

const (
	headersAtOnce = 256
	keysKept      = 256
	longestKept   = 256 // bytes of a key
)

func (h *headers) of(r *batch.Record) []Header {
	n := r.NumHeaders
	if n == 0 {
		return nil
	}
	if n > len(h.free) {
		h.free = make([]Header, max(n, headersAtOnce))
	}
	out := h.free[:0:n]
	h.free = h.free[n:]
	r.EachHeader(func(key, value []byte) bool {
		out = append(out, Header{h.key(key), value})
		return true
	})
	return out
}

func (h *headers) key(b []byte) string {
	if k, ok := h.keys[string(b)]; ok {
		return k
	}
	if len(b) > longestKept {
		return string(b)
	}
	if h.keys == nil || len(h.keys) >= keysKept {
		h.keys = map[string]string{}
	}
	k := string(b)
	h.keys[k] = k
	return k
}
