// Package readme compiles and runs the programs of README.md, so that they do
// not rot: the text of each is a part of example_test.go, to the letter. It has
// tests only.
package readme
