// Package budget runs jobs in processes that the system would kill for taking
// more memory than they were given. It has tests only.
package budget
