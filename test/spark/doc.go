// Package spark holds the behaviours that Spark's own suites assert of
// mapWithState end to end, rewritten for whole jobs in the test kit. The ids
// (MW1 …) stand at each test. It has tests only.
package spark
