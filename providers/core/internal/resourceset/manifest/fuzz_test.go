package manifest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever the values of a ConfigMap or Secret are: the objects are complete and limited in number and size, the result depends on
// nothing else, and problems do not quote the values. Equal hashes mean equal keys and values.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		object("Pod", "1"), object("Namespace", "a") + "---\n" + object("Pod", "b"), `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}]}`,
		"a: &a [*a]", bomb(), "---\n---", "- hunter2", "password: {hunter2: [", `{"kind":"PodList","apiVersion":"v1","items":[null,1,{"metadata":{"name":"x"}}]}`, "!!binary aGk=", "? {a: b}\n: c", "{}{}", `{"a":1}` + "\n---\nb: 2",
	} {
		f.Add("key", []byte(text), "other", []byte("kind: Pod"))
	}
	f.Fuzz(func(t *testing.T, key string, value []byte, other string, more []byte) {
		const secret = "hunter2"
		data := map[string][]byte{key: value, other: more}
		objects, problems := Read(data)
		if len(objects) > maxObjects {
			t.Errorf("%d objects", len(objects))
		}
		size := 0
		for _, o := range objects {
			if o.GetKind() == "" || o.GetAPIVersion() == "" || o.GetName() == "" || o.Document < 1 {
				t.Errorf("incomplete: %s", o.Describe())
			}
			size += len(fmt.Sprint(o.Object))
		}
		if size > 4*maxBytes {
			t.Errorf("%d bytes", size)
		}
		for _, p := range problems {
			if strings.Contains(p.Error(), secret) && !strings.Contains(key+other, secret) {
				t.Errorf("a problem quotes the values: %s", p)
			}
		}
		if diff := cmp.Diff(read(data), read(data)); diff != "" {
			t.Error(diff)
		}
		moved := map[string][]byte{key: more, other: value}
		if same := key == other || bytes.Equal(value, more); (Hash(data) == Hash(moved)) != same && key != other {
			t.Errorf("hashes of %q and %q", data, moved)
		}
	})
}
