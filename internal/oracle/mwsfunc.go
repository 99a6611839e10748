package oracle

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/statemill/statemill/dstream"
)

// mwsFunc is the mapping function of the mapWithState cases: the record's
// value says which calls to make on the state. The output is the canonical
// JSON of what the recorded function emitted.
func mwsFunc(onTimeout string) func(time.Time, string, dstream.Option[string], *dstream.State[int64]) (string, bool, error) {
	return func(t time.Time, key string, value dstream.Option[string], s *dstream.State[int64]) (string, bool, error) {
		op, ok := value.Get()
		if !ok {
			return mwsTimeout(onTimeout, t, key, s)
		}
		return mwsRecord(op, t, key, s)
	}
}

// emit gives [key, what, rest...] as the output of a call.
func emit(key, what string, rest ...any) (string, bool, error) {
	text, err := CanonOf(append([]any{key, what}, rest...))
	return text, err == nil, err
}

func mwsRecord(text string, t time.Time, key string, s *dstream.State[int64]) (string, bool, error) {
	op, args, err := parseOp(text)
	if err != nil {
		return "", false, err
	}
	switch op {
	case "inc", "qinc":
		sum := s.OrElse(0) + args[0]
		s.Update(sum)
		if op == "qinc" {
			return "", false, nil
		}
		return emit(key, op, sum)
	case "set":
		s.Update(args[0])
		return emit(key, op, args[0])
	case "del":
		old := getOption(s)
		if s.Exists() {
			s.Remove()
		}
		return emit(key, op, old)
	case "rm":
		s.Remove()
		return emit(key, op)
	case "get":
		return emit(key, op, getOption(s))
	case "noop":
		return "", false, nil
	case "time":
		return emit(key, op, t.UnixMilli())
	case "probe":
		return emit(key, op, map[string]any{
			"exists": s.Exists(), "isTimingOut": s.IsTimingOut(), "getOption": getOption(s), "get": tryGet(s),
		})
	case "updrm":
		s.Update(args[0])
		s.Remove()
		return emit(key, op, look(s))
	case "rmupd":
		s.Remove()
		return emit(key, op, errorObject(s.TryUpdate(args[0])))
	case "rmrm":
		s.Remove()
		return emit(key, op, errorObject(s.TryRemove()))
	case "rmget":
		s.Remove()
		return emit(key, op, look(s))
	case "updget":
		s.Update(args[0])
		return emit(key, op, s.Get())
	case "upd2":
		s.Update(args[0])
		s.Update(args[1])
		return emit(key, op, args[1])
	case "throw":
		return "", false, &boom{text: "boom " + key}
	}
	return "", false, fmt.Errorf("oracle: unknown record value %q of key %q", text, key)
}

func mwsTimeout(how string, t time.Time, key string, s *dstream.State[int64]) (string, bool, error) {
	switch how {
	case "", "emit":
		return emit(key, "timeout", s.Get())
	case "silent":
		return "", false, nil
	case "probe":
		return emit(key, "timeout", s.Get(), map[string]any{
			"exists": s.Exists(), "isTimingOut": s.IsTimingOut(), "getOption": getOption(s), "time": t.UnixMilli(),
			"update": errorObject(s.TryUpdate(0)), "remove": errorObject(s.TryRemove()),
		})
	case "throw":
		return "", false, &boom{text: "boom on timeout " + key}
	}
	return "", false, fmt.Errorf("oracle: unknown onTimeout %q", how)
}

// boom is what the recorded functions throw.
type boom struct{ text string }

func (b *boom) Error() string { return b.text }

// opArgs is the number of arguments that each record value takes.
var opArgs = map[string]int{
	"inc": 1, "qinc": 1, "set": 1, "updrm": 1, "rmupd": 1, "updget": 1, "upd2": 2,
	"del": 0, "rm": 0, "get": 0, "noop": 0, "time": 0, "probe": 0, "rmrm": 0, "rmget": 0, "throw": 0,
}

// parseOp takes "name:n:m" apart.
func parseOp(text string) (op string, args [2]int64, err error) {
	parts := strings.Split(text, ":")
	n, ok := opArgs[parts[0]]
	if !ok || len(parts) != n+1 {
		return "", args, fmt.Errorf("oracle: unknown record value %q", text)
	}
	for i, p := range parts[1:] {
		if args[i], err = strconv.ParseInt(p, 10, 64); err != nil {
			return "", args, fmt.Errorf("oracle: record value %q: %w", text, err)
		}
	}
	return parts[0], args, nil
}

// getOption is the state, or nil (JSON null) when it is not set.
func getOption(s *dstream.State[int64]) any {
	if v, ok := s.Lookup(); ok {
		return v
	}
	return nil
}

// tryGet is the state or the error of reading it.
func tryGet(s *dstream.State[int64]) any {
	v, err := s.TryGet()
	if err != nil {
		return errorObject(err)
	}
	return v
}

func look(s *dstream.State[int64]) map[string]any {
	return map[string]any{"exists": s.Exists(), "getOption": getOption(s), "get": tryGet(s)}
}

// errorObject gives an error as the recording has it: class and message.
// Statemill's texts are Spark's without what Scala's require puts in front.
func errorObject(err error) any {
	if err == nil {
		return nil
	}
	if err.Error() == "State is not set" {
		return map[string]string{"error": "java.util.NoSuchElementException", "message": err.Error()}
	}
	return map[string]string{
		"error":   "java.lang.IllegalArgumentException",
		"message": "requirement failed: " + err.Error(),
	}
}
