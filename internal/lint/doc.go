// Package lint holds the rules of this repository that no general linter knows, as functions over parsed source.
//
// The main types are Tree (every Go file of the repository, by module-relative path), Rule (a name and a check) and
// Finding (file, line, rule, text). The test of this package loads the repository and demands no finding; other tests feed
// each rule a bad snippet, so that a rule that has stopped biting is seen.
//
// The tables are the truth where they and a document differ: rooms (who may import whom) in rooms.go, outside modules in
// rooms.go, allowed package variables in vars.go. A rule reads syntax alone, no types: it may be fooled on purpose, it is
// there against accidents. It does not look into testdata and generated files, and it never changes a file.
package lint
