package remote

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Whatever a workload cluster sends for a list: the objects are the same as if it was decoded as a whole,
// the memory is limited by its length, and an error does not quote it.
func FuzzPage(f *testing.F) {
	for _, text := range []string{
		`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"x"},"items":[{"metadata":{"name":"a","labels":{"é":"日本"}},"spec":{"providerID":"x://1"}},{"metadata":{"name":"b"}}]}`, `{"items":[],"metadata":{"resourceVersion":"1"}}`, `{"items":null}`, `{"items":{}}`, `{"items":[1]}`, `{"items":[null]}`, `{"items":[{"metadata":"secret-secret"}]}`,
		`{"metadata":"secret-secret"}`, `{"metadata":{"resourceVersion":1}}`, `[]`, `{`, ``, `null`, `{"items":[{}`, `{"items":[{}]}garbage`, `{"items":[{"metadata":{"name":"a"}}],"items":[{"metadata":{"name":"b"}}]}`, `{"x":{"y":[[[]]]},"metadata":null}`, `{"items":[{"metadata":{"managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}]}}]}`,
		`{"items":[{"status":{"conditions":[{"type":"Ready","lastTransitionTime":"x"}],"capacity":{"cpu":"1e99"}}}]}`, `{"ITEMS":[{"metadata":{"name":"a"}}]}`, `{"items":[` + strings.Repeat("{},", 100) + `{}]}`, "{\"items\":[{\"metadata\":{\"name\":\"\\ud800\"}}]}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 64<<10 {
			t.Skip("long")
		}
		read := func() (*pages, string, error) {
			s := newStore(Nodes(), corev1.SchemeGroupVersion.WithKind("Node"), nil, &pool{})
			all := &pages{store: s, quota: newQuota("an object", maxObject, maxPage)}
			next, err := all.read(bytes.NewReader(text))
			return all, next, err
		}
		all, next, err := read()
		if err != nil {
			if strings.Contains(err.Error(), "secret-secret") {
				t.Errorf("the error quotes the answer: %v", err)
			}
			return
		}
		if all.memory > 1000*int64(len(text))+1000 {
			t.Errorf("%d bytes take %d", len(text), all.memory)
		}
		var names []string
		for _, item := range all.items {
			node, ok := item.Object.(*corev1.Node)
			if !ok || node.ManagedFields != nil {
				t.Fatalf("%T is kept, or what is not read of it", item.Object)
			}
			names = append(names, node.Name)
		}
		if strings.Count(string(text), `"items"`) != 1 || strings.Count(string(text), `"metadata"`) > 1+len(names) || !json.Valid(text) {
			return // Duplicate fields may be read twice.
		}
		var whole corev1.NodeList
		if err := utiljson.Unmarshal(text, &whole); err != nil {
			return // Something beside the objects and the metadata is not that of a list.
		}
		var want []string
		for _, node := range whole.Items {
			want = append(want, node.Name)
		}
		if diff := cmp.Diff(want, names, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("objects (-whole +one by one):\n%s", diff)
		}
		if next != whole.Continue || all.version != whole.ResourceVersion {
			t.Errorf("continues at %q as of %q instead of %q as of %q", next, all.version, whole.Continue, whole.ResourceVersion)
		}
	})
}
