// Package core is the batch planner as a pure state machine: events in, actions out.
package core
