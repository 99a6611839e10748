package codec

import (
	"errors"
	"reflect"
	"time"
)

var timeType = reflect.TypeFor[time.Time]()

// For returns the codec of T.
func For[T any]() (Codec[T], error) { return nil, errors.New("codec: not built yet") }

// HasRefs reports whether T holds references.
func HasRefs[T any]() bool { return false }

// Cloner returns a function that makes independent copies.
func Cloner[T any]() (func(T) (T, error), error) { return nil, errors.New("codec: not built yet") }
