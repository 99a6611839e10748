package sinktest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// The suite's job has two outputs: "a" with three partitions, one of them always
// empty, and "b" with one. Every third epoch has no rows at all. A row tells
// where it belongs, and a value that shows which attempt computed it.

var outputs = []struct {
	name  string
	parts int
}{{"a", 3}, {"b", 1}}

func texts(root string, epoch uint64, output string, part int, value string) (list []string) {
	if epoch%3 == 0 || part == 1 {
		return nil
	}
	for i := range 3 + part {
		list = append(list, fmt.Sprintf("%s %d %s %d %d %s", root, epoch, output, part, i, value))
	}
	return list
}

// bind gives an epoch's rows to a unit.
func (c Case) bind(u sink.Unit, root string, epoch uint64, value string) []sink.Output {
	s := sink.Sink[string]{Unit: u, Target: c.Target, Encode: c.Encode}
	if s.Encode == nil {
		s.Encode = func(dst []byte, text string) ([]byte, error) { return append(dst, text...), nil }
	}
	var list []sink.Output
	for _, o := range outputs {
		list = append(list, sink.Bind(s, o.name, o.parts, func(_ context.Context, part int, yield func(string) error) error {
			for _, text := range texts(root, epoch, o.name, part, value) {
				if err := yield(text); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return list
}

// writer makes the writer of an epoch.
func (k *kit) writer(c Case, u sink.Unit, root string, epoch uint64, value string) sink.Writer {
	w, err := sink.NewWriter(u, epoch, c.bind(u, root, epoch, value), nil)
	require.NoError(k, err)
	return w
}

func fence(root string, term uint64) sink.Fence {
	return sink.Fence{Root: root, Run: fmt.Sprintf("run-%s-%d", root, term), Term: term}
}

// memory is a memory in which every field says something.
func memory(epoch, term uint64, output sink.Sum) sink.Memory {
	return sink.Memory{Epoch: epoch, Term: term, Output: output, Digest: sink.Digest([]sink.Sum{{byte(epoch), byte(term)}}, output)}
}

// start opens a client and fences.
func (k *kit) start(c Case, in vfs.Injector, root string, term uint64) sink.Unit {
	u := c.Open(in)
	k.T.Cleanup(func() { _ = u.Close() })
	require.NoError(k, u.Fence(k.ctx(), fence(root, term)))
	return u
}

// commit writes an epoch.
func (k *kit) commit(c Case, u sink.Unit, root string, epoch, term uint64, value string) sink.Memory {
	k.Helper()
	w := k.writer(c, u, root, epoch, value)
	out, err := w.Prepare(k.ctx(), false)
	require.NoError(k, err)
	m := memory(epoch, term, out)
	require.NoError(k, w.Commit(k.ctx(), m))
	return m
}

// has asserts the unit's memory.
func (k *kit) has(u sink.Unit, want sink.Memory) {
	k.Helper()
	m, ok, err := u.Memory(k.ctx())
	require.NoError(k, err)
	require.True(k, ok, "there is a memory")
	require.Equal(k, want, m)
}

// sees asserts that readers see exactly these epochs of a root, each once, whole
// and in order. "" stands for any one value.
func (k *kit) sees(c Case, root string, want map[uint64]string) {
	k.Helper()
	require.NoError(k, c.check(k.ctx(), root, want))
}

func (c Case) check(ctx context.Context, root string, want map[uint64]string) error {
	rows, err := c.Read(ctx)
	if err != nil {
		return err
	}
	got := map[string][]string{} // by epoch, output and part
	for _, text := range rows {
		f := strings.Split(text, " ")
		if len(f) != 6 {
			return fmt.Errorf("row %q was not written", text)
		}
		if f[0] == root {
			key := strings.Join(f[1:4], " ")
			got[key] = append(got[key], text)
		}
	}
	for epoch, value := range want {
		for _, o := range outputs {
			for part := range o.parts {
				key := fmt.Sprintf("%d %s %d", epoch, o.name, part)
				list := got[key]
				delete(got, key)
				v := value
				if v == "" && len(list) > 0 {
					v = list[0][strings.LastIndexByte(list[0], ' ')+1:]
				}
				if whole := texts(root, epoch, o.name, part, v); !slices.Equal(list, whole) {
					return fmt.Errorf("epoch %d, output %s, partition %d: readers see %q, want %q", epoch, o.name, part, list, whole)
				}
			}
		}
	}
	for key, list := range got {
		return fmt.Errorf("epoch, output, partition %s: readers see %q, want nothing", key, list)
	}
	return nil
}
