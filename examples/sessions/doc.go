// Sessions groups the page views of users into sessions: a session ends when
// its user has not been seen for a while, and is emitted once, by the final
// call of an idle state.
//
// The job is one mapWithState with a timeout. Every view is added to the
// user's open session, which is state. When a user has been idle for longer
// than the timeout, the function is called once more without a view
// (State.IsTimingOut): that call emits the session, and the state is gone.
//
// The views are a small script, one list a batch, so that the program needs
// nothing and ends by itself; it prints every session as it ends, and checks at
// the end that each view is in exactly one of them (else it exits with 1).
//
// job.go is the Statemill job, main.go the script and the printing.
package main
