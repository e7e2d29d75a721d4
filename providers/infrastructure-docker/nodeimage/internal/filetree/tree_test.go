package filetree_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/filetree"
)

var modified = time.Unix(1767225600, 0).UTC()

// list returns one line per file of a written tree: its type, mode, owner, name, and content or target.
func list(t *testing.T, tree *filetree.Tree) []string {
	t.Helper()
	var out []string
	for reader := tar.NewReader(bytes.NewReader(archive(t, tree))); ; {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(modified) {
			t.Errorf("%s: got time %s, want %s", h.Name, h.ModTime, modified)
		}
		out = append(out, strings.TrimSpace(h.FileInfo().Mode().String()+" "+h.Name+" "+h.Linkname+string(content)))
	}
}

func archive(t *testing.T, tree *filetree.Tree) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := tree.Write(&out, modified); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// source is a small Debian with merged /usr: libraries are reached through links.
func source(t *testing.T) *filetree.Tree {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	writer := tar.NewWriter(file)
	for _, h := range []*tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: time.Unix(1, 0)},
		{Name: "./bin", Typeflag: tar.TypeSymlink, Linkname: "usr/bin", Mode: 0o777},
		{Name: "./usr/", Typeflag: tar.TypeDir, Mode: 0o755, Uname: "root"},
		{Name: "./usr/bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./usr/bin/tool", Typeflag: tar.TypeReg, Mode: 0o4755, Size: 4, PAXRecords: map[string]string{"SCHILY.xattr.user.x": "y", "atime": "5"}},
		{Name: "./usr/bin/alias", Typeflag: tar.TypeSymlink, Linkname: "../bin/tool", Mode: 0o777},
		{Name: "./usr/bin/hard", Typeflag: tar.TypeLink, Linkname: "./usr/bin/tool", Mode: 0o777},
		{Name: "./usr/bin/absolute", Typeflag: tar.TypeSymlink, Linkname: "/bin/tool", Mode: 0o777},
		{Name: "./usr/bin/loop", Typeflag: tar.TypeSymlink, Linkname: "loop", Mode: 0o777},
		{Name: "./usr/bin/broken", Typeflag: tar.TypeSymlink, Linkname: "../../etc/none", Mode: 0o777},
		{Name: "./tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "./dropped", Typeflag: tar.TypeReg},
	} {
		if err := writer.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := writer.Write([]byte("tool")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(writer.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	opened, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	tree, err := filetree.ReadTar(opened, func(name string) bool { return name != "dropped" })
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestReadTar(t *testing.T) {
	want := []string{
		"Lrwxrwxrwx bin usr/bin",
		"dtrwxrwxrwx tmp/",
		"drwxr-xr-x usr/",
		"drwxr-xr-x usr/bin/",
		"Lrwxrwxrwx usr/bin/absolute /bin/tool",
		"Lrwxrwxrwx usr/bin/alias ../bin/tool",
		"Lrwxrwxrwx usr/bin/broken ../../etc/none",
		"urwxr-xr-x usr/bin/hard tool",
		"Lrwxrwxrwx usr/bin/loop loop",
		"urwxr-xr-x usr/bin/tool tool",
	}
	if diff := cmp.Diff(want, list(t, source(t))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCopy(t *testing.T) {
	tests := []struct {
		reason string
		name   string
		want   []string
	}{
		{
			reason: "a link is copied with its target, and the links and directories on the way",
			name:   "/bin/alias",
			want:   []string{"Lrwxrwxrwx bin usr/bin", "drwxr-xr-x usr/", "drwxr-xr-x usr/bin/", "Lrwxrwxrwx usr/bin/alias ../bin/tool", "urwxr-xr-x usr/bin/tool tool"},
		},
		{
			reason: "an absolute link starts at the root of the tree",
			name:   "usr/bin/absolute",
			want:   []string{"Lrwxrwxrwx bin usr/bin", "drwxr-xr-x usr/", "drwxr-xr-x usr/bin/", "Lrwxrwxrwx usr/bin/absolute /bin/tool", "urwxr-xr-x usr/bin/tool tool"},
		},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			tree := filetree.New()
			if err := tree.Copy(source(t), test.name); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, list(t, tree)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCopyRejects(t *testing.T) {
	from := source(t)
	for _, name := range []string{"usr/bin/none", "usr/bin/broken", "usr/bin/loop", "/", "../.."} {
		if err := filetree.New().Copy(from, name); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if err := filetree.New().Copy(from, "usr/bin/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestWriteDependsOnContentOnly(t *testing.T) {
	one, other := filetree.New(), filetree.New()
	additions := []func(*filetree.Tree){
		func(t *filetree.Tree) { t.AddFile("/etc/b", 0o644, []byte("b")) },
		func(t *filetree.Tree) { t.AddFile("etc/a", 0o600, []byte("a")) },
		func(t *filetree.Tree) { t.AddLink("a", "etc/a") },
		func(t *filetree.Tree) { t.AddDir("var/lib", 0o700) },
	}
	for i, add := range additions {
		add(one)
		additions[len(additions)-1-i](other)
	}
	if !bytes.Equal(archive(t, one), archive(t, other)) {
		t.Error("the order in which files are added must not matter")
	}
	want := []string{
		"Lrwxrwxrwx a etc/a", "drwxr-xr-x etc/", "-rw------- etc/a a", "-rw-r--r-- etc/b b", "drwxr-xr-x var/", "drwx------ var/lib/",
	}
	if diff := cmp.Diff(want, list(t, one)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRemove(t *testing.T) {
	tree := filetree.New()
	tree.AddFile("var/log/a", 0o644, nil)
	tree.AddFile("var/log.d/b", 0o644, nil)
	tree.Remove("/var/log", "none")
	if diff := cmp.Diff([]string{"drwxr-xr-x var/", "drwxr-xr-x var/log.d/", "-rw-r--r-- var/log.d/b"}, list(t, tree)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Programs of the machine, in a tree with and without their libraries.
func TestCopyPrograms(t *testing.T) {
	const program = "bin/ls"
	libraries, _ := filepath.Glob("/lib/*-linux-gnu*/lib*.so.*")
	linkers, _ := filepath.Glob("/lib*/ld-linux*.so.*")
	content, err := os.ReadFile("/" + program)
	if err != nil || len(libraries) == 0 || len(linkers) == 0 {
		t.Skip("requires the programs of Debian")
	}
	bare := filetree.New()
	bare.AddFile(program, 0o755, content)
	bare.AddFile("bin/script", 0o755, []byte("#!/bin/sh\n"))
	if err := filetree.New().CopyPrograms(bare, "bin/script"); err != nil {
		t.Errorf("a script needs no libraries, got %v", err)
	}
	if err := filetree.New().CopyPrograms(bare, program); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a library that is not in the tree must be an error, got %v", err)
	}

	system := bare
	for _, name := range append(libraries, linkers...) {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		system.AddFile(name, 0o644, content)
	}
	copied := filetree.New()
	if err := copied.CopyPrograms(system, program); err != nil {
		t.Fatal(err)
	}
	if found := copied.Glob("lib/*/libc.so.6"); len(found) != 1 {
		t.Errorf("the C library must be copied, got %v", found)
	}
	if found := copied.Glob("lib*/ld-linux*"); len(found) != 1 {
		t.Errorf("the dynamic linker must be copied, got %v", found)
	}
	if have, all := len(copied.Glob("lib/*/*")), len(libraries); have >= all {
		t.Errorf("only what is needed must be copied, got %d of %d libraries", have, all)
	}
}
