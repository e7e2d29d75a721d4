package journey

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/util/cert"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/managers"
)

// TestExtensionOfTheBook builds the extension that is printed in the book of Cluster API v1.7, unmodified, in a module of its own that
// replaces one module, and lets it take part in the life of a Cluster.
//
// Each change compiles against the same import paths (test/importpaths), and calls extensions in other journeys.
func TestExtensionOfTheBook(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	listing := bookListing(t)
	w := newExtensionWorld(t)
	program := buildOutside(t, w.Tools.Root, listing)
	log, endpoint := startExtension(t, program)
	testenv.Must(t, w.Client.Create(t.Context(), w.extensionConfig("book", endpoint)))
	w.discovered("book", "True before-cluster-create.book before-cluster-upgrade.book")
	c := w.Subject(NewCluster("c", w.Class(w.Tools.ProjectTemplate())).Version("v1.29.2").Variable("startupDuration", "100ms").Workers(1).Build())
	c.Eventually("the Cluster is created", Ready, ControlPlanes(1), Workers(1))
	if !strings.Contains(log.String(), "BeforeClusterCreate is called") {
		t.Errorf("the extension was not called before the creation: %s", log)
	}
	c.Change(func(cluster *clusterv1.Cluster) { SetVersion("v1.30.5")(cluster) })
	c.Eventually("the Cluster is upgraded", Ready, Version("v1.30.5"), ControlPlanes(1), Workers(1))
	if !strings.Contains(log.String(), "BeforeClusterUpgrade is called") {
		t.Errorf("the extension was not called before the upgrade: %s", log)
	}
}

// bookListing returns the program in the book, which is not part of this repository and may not exist.
func bookListing(t *testing.T) string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(shared.Management(t).Tools.Root, "..", "shared", "seeds", "*.txt"))
	testenv.Must(t, err)
	for _, page := range pages {
		content, err := os.ReadFile(page)
		testenv.Must(t, err)
		_, from, found := strings.Cut(string(content), "minimal example of a Runtime Extension server implementation:\n")
		listing, _, ends := strings.Cut(from, "\nFor a full example see")
		if found && ends {
			return strings.TrimSpace(listing) + "\n"
		}
	}
	t.Skip("there is no book of Cluster API v1.7")
	return ""
}

// buildOutside builds a program in a module that requires Cluster API, and replaces only the root module. Nothing is downloaded.
func buildOutside(t *testing.T, root, source string) (program string) {
	t.Helper()
	dir := t.TempDir()
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	testenv.Must(t, err)
	const module = "module example.org/extension\n\ngo 1.26\n\nreplace sigs.k8s.io/cluster-api => %s\n\nrequire sigs.k8s.io/cluster-api v0.0.0\n"
	for name, content := range map[string]string{"main.go": source, "go.mod": fmt.Sprintf(module, root), "go.sum": string(sums)} {
		testenv.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	program = filepath.Join(dir, "extension")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return program
}

// output collects what a process writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns what was written so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// startExtension runs the program until the test ends, and returns its log and how to reach it.
func startExtension(t *testing.T, program string) (*output, map[string]any) {
	t.Helper()
	dir, authority := servingCertificate(t)
	port, err := managers.FreePort()
	testenv.Must(t, err)
	log := &output{}
	ctx, stop := context.WithCancel(context.Background())
	process := exec.CommandContext(ctx, program, "--webhook-port", fmt.Sprint(port), "--webhook-cert-dir", dir)
	process.Stdout, process.Stderr = log, log
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGINT) }
	testenv.Must(t, process.Start())
	t.Cleanup(func() {
		stop()
		_ = process.Wait() // It was interrupted.
	})
	return log, map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d", port), "caBundle": base64.StdEncoding.EncodeToString(authority)}
}

// servingCertificate returns a directory with a certificate for this host, and the certificate that clients trust.
func servingCertificate(t *testing.T) (dir string, authority []byte) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	testenv.Must(t, err)
	dir = t.TempDir()
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	return dir, certificate
}
