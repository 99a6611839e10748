// Package hostile does to whole jobs on a checkpoint what users and operators do to
// them: names and sources that come and go, folders that vanish or are full, clocks
// that jump, stops at every moment. For each, either the answer is right, or an error
// names the thing; nothing is lost or counted twice. It has tests only.
package hostile
