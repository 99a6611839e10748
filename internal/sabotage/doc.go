// Package sabotage switches on deliberate one-line faults, to prove that the
// tests notice them.
//
// A fault stands at the place of the rule it breaks:
//
//	if sabotage.On("no-undo") {
//		return
//	}
//
// In a normal build [On] is a constant false and the branch is not compiled.
// Under the build tag "sabotage" exactly the fault named by the environment
// variable STATEMILL_SABOTAGE is on, and some test of the same package must
// then fail. The test cache does not see that variable: run with -count=1.
package sabotage
