package etcdsnapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestDrill(t *testing.T) {
	e := startEtcd(t, filepath.Join(t.TempDir(), "data"), "m1")
	values := map[string][]byte{
		"/registry/configmaps/default/a": object(t, "a", 100), "/registry/configmaps/default/b": object(t, "b", 1<<20),
		"/registry/a.example.com/a/x": jsonObject(t, "x"), "/registry/secrets/default/s": []byte("k8s:enc:kms:v2:key:x"),
		"/registry/broken/a": []byte("garbage"), "/registry/broken/b": object(t, "b", 100)[:50], "/registry/broken/c": nil,
		"/registry/broken/d": []byte("{}"), "/registry/broken/e": []byte("k8s\x00"), "/other/key": []byte("garbage"),
		"/registry": []byte("garbage"), "/registry0": []byte("garbage"),
	}
	var revision int64
	for key, value := range values {
		revision = max(revision, e.put(t, key, value))
	}
	// More than a page, the last of which is full.
	for i := range 5 * minPage {
		revision = e.put(t, fmt.Sprintf("/registry/pods/%d", i), object(t, "p", 10))
	}
	path, _ := e.snapshot(t)
	workDir := t.TempDir()
	var calls []int
	got, err := Drill(t.Context(), path, workDir, func(d Drilled) { calls = append(calls, d.Keys) })
	if err != nil {
		t.Fatal(err)
	}
	want := Drilled{Keys: 9 + 5*minPage, Decoded: 3 + 5*minPage, Encrypted: 1, Undecodable: 5, Revision: revision}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(calls) < 2 || calls[len(calls)-1] != want.Keys {
		t.Errorf("progress: %v", calls)
	}
	if entries, err := os.ReadDir(workDir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if info, err := Inspect(t.Context(), path); err != nil || info.Revision != revision {
		t.Errorf("the snapshot after the drill: %+v, %v", info, err)
	}
}

func TestDrillEndsWithItsContext(t *testing.T) {
	path, _ := filled(t)
	stop := errors.New("the object was deleted")
	ctx, cancel := context.WithCancelCause(t.Context())
	workDir := t.TempDir()
	_, err := Drill(ctx, path, workDir, func(Drilled) { cancel(stop) })
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(workDir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := Drill(t.Context(), path, filepath.Join(workDir, "missing"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
}

// TestDrillOfWhatStopsEtcd has content whose structure is valid, and with which etcd ends the process or panics.
func TestDrillOfWhatStopsEtcd(t *testing.T) {
	path, _ := filled(t)
	tests := []struct {
		reason string
		change func(tx *bbolt.Tx) error
	}{
		{"a lease that is none", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("lease")).Put([]byte("12345678"), []byte("\xff\xff"))
		}},
		{"a cluster version that is none", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(clusterBucket)).Put([]byte("downgrade"), []byte("{"))
		}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			workDir := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			result, err := Drill(ctx, changed(t, path, tc.change), workDir, nil)
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %+v, %v", result, err)
			}
			if entries, err := os.ReadDir(workDir); err != nil || len(entries) > 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
		})
	}
}

// measured selects the test that a process of TestLarge runs, and its snapshot.
const measured = "ETCDSNAPSHOT_MEASURED"

// TestLarge measures 100 MiB of objects, each function in a process of its own. Most of the memory is for reading objects of any size.
func TestLarge(t *testing.T) {
	testenv.Soak(t)
	e := startEtcd(t, filepath.Join(t.TempDir(), "data"), "m1")
	value := object(t, "large", 10<<10)
	for i := range 100 << 20 / len(value) {
		e.put(t, fmt.Sprintf("/registry/configmaps/default/c%05d", i), value)
	}
	path, summary := e.snapshot(t)
	e.stop()
	t.Logf("the snapshot has %d MiB", summary.Size>>20)
	for _, name := range []string{"Inspect", "Restore", "Drill"} {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestMeasured", "-test.v")
		child.Env = append(os.Environ(), measured+"="+name+":"+path)
		output, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		for line := range strings.Lines(string(output)) {
			if strings.Contains(line, name) {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

// TestMeasured is a part of TestLarge.
func TestMeasured(t *testing.T) {
	name, path, found := strings.Cut(os.Getenv(measured), ":")
	if !found {
		t.Skip("it is a part of TestLarge")
	}
	most := 0
	sample := func(Drilled) { most = max(most, status(t, "RssAnon")) }
	start := time.Now()
	var err error
	switch name {
	case "Inspect":
		_, err = Inspect(t.Context(), path)
	case "Restore":
		err = Restore(t.Context(), path, filepath.Join(t.TempDir(), "data"), Options{Name: "m", PeerURL: "http://a:1"})
	default:
		_, err = Drill(t.Context(), path, t.TempDir(), sample)
	}
	if err != nil {
		t.Fatal(err)
	}
	sample(Drilled{})
	t.Logf("%s: %s, memory %d MiB, with mapped files %d MiB", name, time.Since(start).Round(time.Millisecond), most>>10, status(t, "VmHWM")>>10)
	if most > 256<<10 {
		t.Errorf("%d MiB of memory are in use", most>>10)
	}
}

// status returns a number of /proc/self/status, in KiB.
func status(t *testing.T, name string) int {
	t.Helper()
	content, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); fields[0] == name+":" {
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal(io.ErrUnexpectedEOF)
	return 0
}
