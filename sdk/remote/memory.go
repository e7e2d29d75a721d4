package remote

import "reflect"

// memory estimates the memory that an object takes, in bytes. Its encoded size would be misleading: two bytes can become a structure of
// two hundred.
func memory(obj any) int64 {
	v := reflect.ValueOf(obj)
	return int64(v.Type().Size()) + beyond(v) // types are small
}

// beyond returns the memory that a value refers to.
func beyond(v reflect.Value) int64 {
	switch v.Kind() { // All other kinds refer to nothing.
	case reflect.String:
		return int64(v.Len())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return whole(v.Elem())
	case reflect.Struct:
		var n int64
		for i := range v.NumField() {
			n += beyond(v.Field(i))
		}
		return n
	case reflect.Slice:
		n := int64(v.Cap()) * int64(v.Type().Elem().Size()) // types are small
		for i := range v.Len() {
			n += beyond(v.Index(i))
		}
		return n
	case reflect.Map:
		var n int64
		for entries := v.MapRange(); entries.Next(); {
			n += whole(entries.Key()) + whole(entries.Value())
		}
		return n
	}
	return 0
}

func whole(v reflect.Value) int64 {
	return int64(v.Type().Size()) + beyond(v) // types are small
}
