package protocol

type step uint8

type after uint8

// Next is what to do now. It is the same until Done is told its result; after a
// stop it is that stop for ever.
func (m *Machine) Next() Action { return Action{} }

// Done takes in the result of the action that Next gave. A result that does not
// fit is a MisfitError and changes nothing.
func (m *Machine) Done(r Result) error { return nil }
