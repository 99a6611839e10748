// Package readme compiles and runs the programs of README.md and of the guide
// docs/from-spark.md, so that they do not rot: the text of each is a part of a test
// file here, to the letter. It has tests only.
package readme
