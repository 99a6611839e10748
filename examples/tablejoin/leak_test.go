package main

import (
	"testing"

	"go.uber.org/goleak"
)

// No run leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
