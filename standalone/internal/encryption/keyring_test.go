package encryption_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/standalone/internal/encryption"
)

// A keyring through its life: each step opens it again, as a start does.
func TestKeyring(t *testing.T) {
	t.Parallel()
	const first, second, third = "20260101T000000Z", "20260102T000000Z", "20260601T000000Z"
	at := func(name string) time.Time {
		when, err := time.Parse("20060102T150405Z", name)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	path := filepath.Join(t.TempDir(), "keys")
	for _, step := range []struct {
		reason string
		stored encryption.Stored
		rotate bool
		now    string
		// want are the keys and "identity" in the order of the file.
		want    []string
		current bool
	}{
		{"plain Secrets of an older version can be read, but new ones are encrypted", encryption.Stored{Plain: true}, false, first, []string{first, "identity"}, false},
		{"everything is rewritten", encryption.Stored{Keys: []string{first}}, false, first, []string{first}, true},
		{"a requested rotation", encryption.Stored{Keys: []string{first}}, true, second, []string{second, first}, false},
		{"an interruption: both keys are in use", encryption.Stored{Keys: []string{first, second}}, false, second, []string{second, first}, false},
		{"two rotations within a second generate one key", encryption.Stored{Keys: []string{first, second}}, true, second, []string{second, first}, false},
		{"the previous key is no longer in use", encryption.Stored{Keys: []string{second}}, false, second, []string{second}, true},
		{"old keys are replaced", encryption.Stored{Keys: []string{second}}, false, third, []string{third, second}, false},
		{"a cluster without Secrets needs one key", encryption.Stored{}, false, third, []string{third}, true},
	} {
		ring, err := encryption.Open(step.stored, encryption.Options{Path: path, Rotate: step.rotate, Now: at(step.now)})
		if err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if diff := cmp.Diff(step.want, providers(t, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
		if got := ring.Current(step.stored); got != step.current {
			t.Errorf("%s: current is %v", step.reason, got)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the file should be private: %v, %v", step.reason, info, err)
		}
	}
}

func TestKeysAreNotForgottenTooEarly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := encryption.Open(encryption.Stored{}, encryption.Options{Path: path, Now: now}); err != nil {
		t.Fatal(err)
	}
	old := providers(t, path)[0]
	ring, err := encryption.Open(encryption.Stored{Keys: []string{old}}, encryption.Options{Path: path, Rotate: true, Now: now.Add(time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	newest := providers(t, path)[0]
	for _, step := range []struct {
		reason string
		stored encryption.Stored
		want   []string
		fails  bool
	}{
		{"some Secrets are rewritten", encryption.Stored{Keys: []string{old, newest}}, []string{newest, old}, false},
		{"all Secrets are rewritten", encryption.Stored{Keys: []string{newest}}, []string{newest}, false},
		{"a backup was restored under a running process", encryption.Stored{Keys: []string{old}}, []string{newest}, true},
	} {
		if err := ring.Forget(step.stored); (err != nil) != step.fails {
			t.Errorf("%s: %v", step.reason, err)
		}
		if diff := cmp.Diff(step.want, providers(t, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
	}
}

func TestInvalidKeys(t *testing.T) {
	t.Parallel()
	const secret = "c2VjcmV0IGlzIHNlY3VyZSwgb3IgaXMgaXQ/Cg=="
	for _, test := range []struct {
		reason  string
		content string
		mode    os.FileMode
		want    string
	}{
		{"the file is missing, but data is encrypted", "", 0, "are encrypted with keys (20260101T000000Z) that"},
		{"it is not a file of keys", "keys: [" + secret + "]", 0o600, "is not a file of encryption keys"},
		{"it is readable by others", "{}", 0o640, "run chmod 600"},
	} {
		path := filepath.Join(t.TempDir(), "keys")
		if test.mode != 0 {
			if err := os.WriteFile(path, []byte(test.content), test.mode); err != nil {
				t.Fatal(err)
			}
		}
		_, err := encryption.Open(encryption.Stored{Keys: []string{"20260101T000000Z"}}, encryption.Options{Path: path, Now: time.Now()})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.reason, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error quotes a key", test.reason)
		}
		if content, _ := os.ReadFile(path); string(content) != test.content {
			t.Errorf("%s: the file was changed", test.reason)
		}
	}
}

// providers lists the names of the keys in a file, and "identity".
func providers(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- "))
		if name, is := strings.CutPrefix(line, "name: "); is {
			found = append(found, name)
		}
		if strings.HasPrefix(line, "identity:") {
			found = append(found, "identity")
		}
	}
	return found
}
