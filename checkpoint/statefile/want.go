package statefile

import (
	"strconv"

	"github.com/statemill/statemill/internal/sabotage"
)

// Want says which file a reader is to accept.
type Want struct {
	Kind      Kind
	Operator  string
	Partition int
	Version   int64
	Deadlines bool // as Info.Deadlines

	// KeyCodec and StateCodec are the codecs; empty ones are not compared. A
	// Loader fills them in.
	KeyCodec, StateCodec string

	// Chain is the committed chain hash of the version; Checksum is the
	// committed checksum of the file. Zero ones are not compared.
	Chain, Checksum Sum
}

// checkHead compares what is known at the head; the chain hash too if it
// stands there.
func (w *Want) checkHead(path string, i *Info) error {
	form := func(deadlines bool) string {
		if deadlines {
			return "deadlines"
		}
		return "update times"
	}
	pairs := []struct{ what, got, want string }{
		{"kind", i.Kind.String(), w.Kind.String()},
		{"operator", strconv.Quote(i.Operator), strconv.Quote(w.Operator)},
		{"partition", strconv.Itoa(i.Partition), strconv.Itoa(w.Partition)},
		{"version", strconv.FormatInt(i.Version, 10), strconv.FormatInt(w.Version, 10)},
		{"form of times", form(i.Deadlines), form(w.Deadlines)},
	}
	if w.KeyCodec != "" {
		pairs = append(pairs, struct{ what, got, want string }{"key codec", strconv.Quote(i.KeyCodec), strconv.Quote(w.KeyCodec)})
	}
	if w.StateCodec != "" {
		pairs = append(pairs, struct{ what, got, want string }{"state codec", strconv.Quote(i.StateCodec), strconv.Quote(w.StateCodec)})
	}
	for _, p := range pairs {
		if p.got != p.want {
			return w.mismatch(path, p.what, p.got, p.want)
		}
	}
	if i.Kind == Snapshot {
		return w.checkSum(path, "chain hash", i.Chain, w.Chain)
	}
	return nil
}

// checkSums compares what is known at the footer.
func (w *Want) checkSums(path string, s *Summary) error {
	if err := w.checkSum(path, "chain hash", s.Chain, w.Chain); err != nil {
		return err
	}
	return w.checkSum(path, "checksum", s.Checksum, w.Checksum)
}

// checkSum is where a file of an abandoned line is found.
func (w *Want) checkSum(path, what string, got, want Sum) error {
	if want.IsZero() || got == want || sabotage.On("hash-not-checked") {
		return nil
	}
	return w.mismatch(path, what, got.String(), want.String())
}

func (w *Want) mismatch(path, what, got, want string) error {
	return &MismatchError{Path: path, Operator: w.Operator, Partition: w.Partition, Version: w.Version,
		What: what, Got: got, Want: want}
}
