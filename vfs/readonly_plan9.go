package vfs

// IsReadOnly reports whether an error says that the file system cannot be written
// to at all. Here errors do not tell.
func IsReadOnly(error) bool { return false }
