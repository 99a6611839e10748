package vfs

// Injector decides about calls before they are made. [Faults] is one; write
// another for what its rules cannot say.
type Injector interface {
	// Before is told each call, from the goroutine that makes it. It may block:
	// then the caller is frozen in the instant before the call.
	Before(c Call) Fault
}

// Fault is what shall happen to a call; the zero value lets it pass.
type Fault struct {
	// Err is what the caller gets.
	Err error
	// After makes the call first and then throws its answer away for Err.
	After bool
	// Keep is how many bytes of a write get through before Err.
	Keep int
}

// WithFaults returns fsys with an injector before every call to it and to its
// files, except Name, Hostname and PID. Closing always closes the file
// underneath, whatever the answer. Errors that are injected come without a
// path of their own.
func WithFaults(fsys FS, in Injector) FS { return hookFS{fsys, injecting{in}} }

// WithStoreFaults returns s with an injector before every call to it. The bytes
// of a put are calls of KindWrite with the object's name, inside the put.
func WithStoreFaults(s Store, in Injector) Store { return hookStore{s, injecting{in}} }

// Inject makes a call with an injector before it. It is for what is neither file
// system nor store (a sink, a broker) and shall fail and freeze together with
// them, as one writer.
func Inject(in Injector, c Call, do func() error) error { return injecting{in}.around(c, do, nil) }

type injecting struct{ in Injector }

func (i injecting) around(c Call, do func() error, part func(int)) error {
	f := i.in.Before(c)
	switch {
	case f.Err == nil:
		return do()
	case f.After:
		// Whatever the answer was, the caller does not learn it.
		_ = do()
	case part != nil && f.Keep > 0:
		part(min(f.Keep, c.Bytes))
	}
	return f.Err
}
