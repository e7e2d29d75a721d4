package pictures

import "testing"

func TestWrite(t *testing.T) {
	changed, err := Write("../..")
	t.Log(changed)
	if err != nil {
		t.Fatal(err)
	}
}
