package move

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
)

type silent struct{ said []string }

func (*silent) Start(string, int)                {}
func (*silent) Done()                            {}
func (s *silent) Say(format string, args ...any) { s.said = append(s.said, format) }
func (*silent) Warn(string, ...any)              {}
func (*silent) Log(string, ...any)               {}

func node(group, kind, namespace, name string) *graph.Node {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetUID(types.UID(group + kind + namespace + name))
	o.SetResourceVersion("1")
	return &graph.Node{Object: graph.Object{Unstructured: o, Kind: graph.Kind{GroupVersionKind: o.GroupVersionKind()}}}
}

// write writes a backup, and returns the names of the files, and what is read from them.
func write(t *testing.T, dir string, nodes ...*graph.Node) (names, read []string) {
	t.Helper()
	f, err := openFiles(dir, &silent{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Copy(t.Context(), &graph.Graph{Nodes: nodes}); err != nil {
		t.Fatal(err)
	}
	if err := f.setAside("n"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	objects, err := ReadDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		read = append(read, o.GroupVersionKind().GroupKind().String()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	return names, read
}

func TestWriteAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*?", "x")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 253)
	names, read := write(t, dir, node("ipam.a", "IPAddress", "n", "x"), node("ipam.b", "IPAddress", "n", "x"), node("ipam.a", "Ipaddress", "n", "x"),
		node("a", "Pool", "", "p"), node("a", "Machine", "n", long), node("a", "Machine", "n", long[1:]+"y"), node("a", "Machine", "other", "m"))
	if want := []string{"IPAddress.ipam.b_n_x.yaml", "IPAddress_n_x.yaml", "Ipaddress.ipam.a_n_x.yaml"}; !slices.Equal(names[:3], want) {
		t.Errorf("files are %q", names)
	}
	if len(read) != 7 || len(slices.Compact(slices.Sorted(slices.Values(read)))) != 7 {
		t.Errorf("an object is lost, or there twice: %q", read)
	}
	// The same directory again, with fewer objects.
	names, read = write(t, dir, node("ipam.a", "IPAddress", "n", "x"), node("a", "Machine", "n", "new"))
	if want := []string{"IPAddress.ipam.a n/x", "Machine.a n/new", "Machine.a other/m", "Pool.a /p"}; !cmp.Equal(want, slices.Sorted(slices.Values(read))) {
		t.Errorf("objects are %q", read)
	}
	if !slices.Contains(names, "IPAddress.ipam.b_n_x.yaml.stale") {
		t.Errorf("what is stale is lost: %q", names)
	}
}

// The names of objects come from a server, and files may be links: nothing outside of the directory is written or read.
func TestNothingOutside(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "zz", "out")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	f, err := openFiles(dir, &silent{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, n := range []*graph.Node{
		node("a", "Kind", "n", "x/../../escaped"), node("a", "../Kind", "n", "x"), node("a", "Kind", "../..", "x"), node("a", "Kind", "n", "a/b"), node("a", "Kind", "n", `a\..\b`), node("a", ".Kind", "n", "x"), node("a", "Kind", "n", "x\x00"),
	} {
		if _, err := f.Copy(t.Context(), &graph.Graph{Nodes: []*graph.Node{n}}); err == nil {
			t.Errorf("%s is written", n.Key())
		}
	}
	secret := filepath.Join(root, "secret")
	if err := os.WriteFile(secret, []byte("{apiVersion: v1, kind: X, metadata: {name: outside}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A link in the place of a file is replaced, not followed.
	if err := os.Symlink(secret, filepath.Join(dir, "Kind_n_x.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDirectory(dir); err == nil {
		t.Error("a link out of the directory is followed")
	}
	if _, err := f.Copy(t.Context(), &graph.Graph{Nodes: []*graph.Node{node("a", "Kind", "n", "x")}}); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(secret); err != nil || !strings.Contains(string(raw), "outside") {
		t.Errorf("a file outside was changed: %s, %v", raw, err)
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 2 {
		t.Errorf("files outside: %v, %v", entries, err)
	}
}

// Files are written by others, too: errors do not quote them, and end soon.
func FuzzReadDirectory(f *testing.F) {
	for _, text := range []string{"{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: c2VjcmV0}}", "a: &a [*a]", "[", "null", "", "kind: X", "a: &a x\nb: [*a, *a]", "--- a\n--- b", "\x00"} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		objects, err := ReadDirectory(dir)
		if err == nil && (len(objects) != 1 || objects[0].GetKind() == "") || err != nil && len(err.Error()) > 300+len(dir) {
			t.Errorf("%q is %v, %v", text, objects, err)
		}
	})
}
