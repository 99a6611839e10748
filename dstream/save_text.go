package dstream

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// pairPackage is where pairs come from.
var pairPackage = reflect.TypeFor[Pair[int, int]]().PkgPath()

// text appends the text of a record, as Print and SaveAsTextFiles write it.
func text[T any](dst []byte, v T) []byte { return appendText(dst, reflect.ValueOf(&v).Elem()) }

// appendText appends a value: pairs as (key,value), as Spark writes them, everything
// else as fmt.Append does.
func appendText(dst []byte, v reflect.Value) []byte {
	t := v.Type()
	if t.Kind() == reflect.Struct && t.PkgPath() == pairPackage && strings.HasPrefix(t.Name(), "Pair[") {
		dst = appendText(append(dst, '('), v.Field(0))
		return append(appendText(append(dst, ','), v.Field(1)), ')')
	}
	if t.NumMethod() == 0 { // fmt would ask for a method; these are most records
		switch t.Kind() {
		case reflect.String:
			return append(dst, v.String()...)
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			return strconv.AppendInt(dst, v.Int(), 10)
		}
	}
	return fmt.Append(dst, v.Interface())
}
