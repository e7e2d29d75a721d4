package lossless

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSeconds(t *testing.T) {
	for _, tt := range []struct {
		reason string
		value  any
		want   int64
		ok     bool
	}{
		{reason: "a duration", value: "1m30s", want: 90, ok: true},
		{reason: "zero is a duration", value: "0s", ok: true},
		{reason: "fractions are dropped", value: "1.999s", want: 1, ok: true},
		{reason: "also of negative durations", value: "-1.999s", want: -1, ok: true},
		{reason: "at most what fits", value: "2000000h", want: math.MaxInt32, ok: true},
		{reason: "at least what fits", value: "-2000000h", want: math.MinInt32, ok: true},
		{reason: "unset", value: nil},
		{reason: "no duration", value: "soon"},
		{reason: "no string", value: int64(3)},
	} {
		got, ok := Seconds(tt.value)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s: %v is %d, %t", tt.reason, tt.value, got, ok)
		}
	}
}

func TestMove(t *testing.T) {
	object := Object{"a": Object{"b": int64(1), "c": int64(2)}, "null": nil, "scalar": "x"}
	Move(object, []string{"a", "b"}, []string{"d", "e", "f"})
	Move(object, []string{"absent", "b"}, []string{"g"})
	Move(object, []string{"null"}, []string{"h"})
	Move(object, []string{"scalar", "b"}, []string{"i"})
	want := Object{"a": Object{"c": int64(2)}, "d": Object{"e": Object{"f": int64(1)}}, "scalar": "x"}
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestListFromMap(t *testing.T) {
	object := Object{"args": Object{"b": "1", "a": ""}, "none": "x"}
	ListFromMap(object, "args")
	ListFromMap(object, "none")
	ListFromMap(object, "absent")
	want := Object{"args": []any{Object{"name": "a", "value": ""}, Object{"name": "b", "value": "1"}}, "none": "x"}
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	object["args"] = append([]any{Object{"name": "b", "value": "0"}}, object["args"].([]any)...)
	MapFromList(object, "args")
	if diff := cmp.Diff(Object{"args": Object{"b": "1", "a": ""}, "none": "x"}, object); diff != "" {
		t.Errorf("the last of a name counts (-want +got):\n%s", diff)
	}
}
