// Package vfstest is the acceptance suite for file systems.
package vfstest
