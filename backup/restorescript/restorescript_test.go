package restorescript_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"sigs.k8s.io/cluster-api/backup/restorescript"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var (
	key    = strings.Repeat("0123456789abcdef", 4)
	iv     = strings.Repeat("fedcba98", 4)
	secret = "X-Signature=abc&part=2"
)

// packed returns a gzipped tar.
func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for name, content := range files {
		testenv.Must(t, archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644, Uid: 4711, Gid: 4711}))
		_, err := archive.Write([]byte(content))
		testenv.Must(t, err)
	}
	testenv.Must(t, archive.Close())
	testenv.Must(t, zipped.Close())
	return out.Bytes()
}

func encrypted(t *testing.T, content []byte) []byte {
	t.Helper()
	k, err := hex.DecodeString(key)
	testenv.Must(t, err)
	counter, err := hex.DecodeString(iv)
	testenv.Must(t, err)
	block, err := aes.NewCipher(k)
	testenv.Must(t, err)
	out := make([]byte, len(content))
	cipher.NewCTR(block, counter).XORKeyStream(out, content)
	return out
}

// node is a machine: its folders, and a server with the data.
type node struct {
	t                         *testing.T
	shell, etc, data, program string
	config                    restorescript.Config
	// serve responds with the data, unless a test replaces it.
	serve http.HandlerFunc
	// requests counts those to the server.
	requests atomic.Int32
}

var database = map[string]string{"member/snap/db": "the database", "member/wal/0.wal": strings.Repeat("log", 10_000)}

func newNode(t *testing.T, files map[string]string) *node {
	t.Helper()
	root := t.TempDir()
	n := &node{t: t, shell: "/bin/sh", etc: filepath.Join(root, "etc"), data: filepath.Join(root, "it's data", "etcd")}
	testenv.Must(t, os.Mkdir(n.etc, 0o755))
	content := encrypted(t, packed(t, files))
	n.serve = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.requests.Add(1)
		if r.URL.RawQuery != secret {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		n.serve(w, r)
	}))
	t.Cleanup(server.Close)
	sum := sha256.Sum256(content)
	n.config = restorescript.Config{URL: server.URL + "/etcd?" + secret, SHA256: strings.ToUpper(hex.EncodeToString(sum[:])), Key: key, IV: iv}
	testenv.Must(t, os.WriteFile(filepath.Join(n.etc, "restore.sh"), []byte(restorescript.Script), 0o700))
	n.write()
	return n
}

// write writes the configuration.
func (n *node) write() {
	n.t.Helper()
	text, err := n.config.Encode()
	testenv.Must(n.t, err)
	testenv.Must(n.t, os.WriteFile(filepath.Join(n.etc, "restore.json"), text, 0o600))
}

// only leaves a machine with these programs.
func (n *node) only(programs ...string) {
	n.t.Helper()
	n.program = n.t.TempDir()
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			n.t.Fatalf("this test requires the program %s: %v", name, err)
		}
		testenv.Must(n.t, os.Symlink(path, filepath.Join(n.program, name)))
	}
}

func (n *node) command() *exec.Cmd {
	run := exec.CommandContext(n.t.Context(), n.shell, filepath.Join(n.etc, "restore.sh"), n.data)
	run.Env = append(os.Environ(), "RESTORE_TRY_FOR=0", "RESTORE_PAUSE=0", "http_proxy=", "https_proxy=", "HTTPS_PROXY=")
	if n.program != "" {
		run.Env = append(run.Env, "PATH="+n.program)
	}
	return run
}

// run runs the script, and returns its output. It must not contain what is secret.
func (n *node) run(environment ...string) (string, error) {
	n.t.Helper()
	run := n.command()
	run.Env = append(run.Env, environment...)
	out, err := run.CombinedOutput()
	for _, hidden := range []string{key, iv, "Signature", "part=2"} {
		if bytes.Contains(out, []byte(hidden)) {
			n.t.Errorf("the output contains a secret:\n%s", out)
		}
	}
	return string(out), err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// restored checks that the machine has the data, and nothing else.
func (n *node) restored() {
	n.t.Helper()
	for name, want := range database {
		path := filepath.Join(n.data, name)
		content, err := os.ReadFile(path)
		if err != nil || string(content) != want {
			n.t.Fatalf("%s has %d bytes, want %d: %v", name, len(content), len(want), err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			n.t.Errorf("mode %v of %s, want 0600: %v", info.Mode(), name, err)
		}
	}
	for _, folder := range []string{n.data, filepath.Join(n.data, "member"), filepath.Join(n.data, "member", "snap")} {
		if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
			n.t.Errorf("mode %v of %s, want 0700: %v", info.Mode(), folder, err)
		}
	}
	if exists(filepath.Join(n.etc, "restore.json")) || exists(filepath.Join(n.data, ".restore")) {
		n.t.Error("the key, or the downloaded file, is left")
	}
}

func TestRestore(t *testing.T) {
	for _, shell := range []string{"/bin/sh", "bash"} {
		for _, download := range []string{"curl", "wget"} {
			t.Run(shell+" "+download, func(t *testing.T) {
				n := newNode(t, database)
				n.shell = shell
				n.only(download, "sh", "openssl", "tar", "gzip", "sha256sum", "sed", "dirname", "head", "wc", "tr", "cut", "date", "sleep",
					"mkdir", "chmod", "rm", "mv", "sync")
				if path, err := exec.LookPath(shell); err == nil {
					n.shell = path
				}
				if out, err := n.run(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				n.restored()
				out, err := n.run()
				if err != nil || !strings.Contains(out, "restored already") || n.requests.Load() != 1 {
					t.Errorf("again: %v, %d requests\n%s", err, n.requests.Load(), out)
				}
				n.restored()
			})
		}
	}
}

func TestRefusals(t *testing.T) {
	all := []string{"sh", "openssl", "tar", "gzip", "sha256sum", "sed", "dirname", "head", "wc", "tr", "cut", "date", "sleep", "mkdir", "chmod", "rm",
		"mv", "sync", "curl"}
	without := func(name string) []string {
		var rest []string
		for _, p := range all {
			if p != name {
				rest = append(rest, p)
			}
		}
		return rest
	}
	for _, test := range []struct {
		reason string
		files  map[string]string
		change func(*node)
		want   string
	}{
		{reason: "data of another origin", want: "was not restored by this script", change: func(n *node) {
			testenv.Must(n.t, os.MkdirAll(filepath.Join(n.data, "member"), 0o700))
		}},
		{reason: "no configuration", want: "cannot read", change: func(n *node) { testenv.Must(n.t, os.Remove(filepath.Join(n.etc, "restore.json"))) }},
		{reason: "no openssl", want: "no openssl: add it to its image", change: func(n *node) { n.only(without("openssl")...) }},
		{reason: "no program that downloads", want: "neither curl nor wget", change: func(n *node) { n.only(without("curl")...) }},
		{reason: "the wget of busybox", want: "its wget is not GNU Wget", change: func(n *node) {
			n.only(without("curl")...)
			testenv.Must(n.t, os.WriteFile(filepath.Join(n.program, "wget"), []byte("#!/bin/sh\necho \"BusyBox v1.36.1 multi-call binary.\" >&2; exit 1\n"), 0o700))
		}},
		{reason: "the server refuses", want: "the download failed, and the last attempt", change: func(n *node) { n.config.URL += "x" }},
		{reason: "no server", want: "the download failed", change: func(n *node) { n.config.URL = "http://127.0.0.1:1/etcd?" + secret }},
		{reason: "another file", want: "SHA-256 of the downloaded data is not the expected one", change: func(n *node) {
			n.serve = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("other")) }
		}},
		{reason: "an incomplete file", want: "SHA-256", change: func(n *node) {
			whole := n.serve
			n.serve = func(w http.ResponseWriter, r *http.Request) {
				part := httptest.NewRecorder()
				whole(part, r)
				_, _ = w.Write(part.Body.Bytes()[:100])
			}
		}},
		{reason: "another key", want: "cannot be decrypted and unpacked", change: func(n *node) { n.config.Key = strings.Repeat("0", 64) }},
		{reason: "no data of etcd", files: map[string]string{"x": "y"}, want: "has no member/snap/db"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			files := test.files
			if files == nil {
				files = database
			}
			n := newNode(t, files)
			if test.change != nil {
				test.change(n)
				if test.reason != "no configuration" {
					n.write()
				}
			}
			out, err := n.run()
			if err == nil || !strings.Contains(out, test.want) {
				t.Errorf("error %v, want one with %q; output:\n%s", err, test.want, out)
			}
			if exists(filepath.Join(n.data, "member", "snap")) || exists(filepath.Join(n.data, ".restore")) {
				t.Error("data is left")
			}
		})
	}
}

func TestInvalidConfigurations(t *testing.T) {
	n := newNode(t, database)
	for field, value := range map[string]string{"url": "file:///etc/passwd", "sha256": "12", "key": strings.Repeat("g", 64), "iv": ""} {
		text, err := n.config.Encode()
		testenv.Must(t, err)
		values := map[string]string{}
		testenv.Must(t, json.Unmarshal(text, &values))
		values[field] = value
		text, err = json.Marshal(values)
		testenv.Must(t, err)
		testenv.Must(t, os.WriteFile(filepath.Join(n.etc, "restore.json"), text, 0o600))
		if out, err := n.run(); err == nil || !strings.Contains(out, "restore.json: "+field+" must") {
			t.Errorf("%s %q: error %v, output %s", field, value, err, out)
		}
		if _, err := restorescript.Parse(string(text)); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s %q: error %v of Parse", field, value, err)
		}
	}
	n.config.URL = `https://h/"x`
	if _, err := n.config.Encode(); err == nil {
		t.Error("a URL that the script would cut off is accepted")
	}
}

// A configuration that another program has encoded, with escaped characters and in one line.
func TestEscapedURL(t *testing.T) {
	n := newNode(t, database)
	text, err := json.Marshal(n.config)
	testenv.Must(t, err)
	if !bytes.Contains(text, []byte(`\u0026`)) {
		t.Fatalf("nothing is escaped in %s", text)
	}
	testenv.Must(t, os.WriteFile(filepath.Join(n.etc, "restore.json"), text, 0o600))
	if out, err := n.run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n.restored()
}

// A download that fails, or is incomplete, is tried again.
func TestRetries(t *testing.T) {
	n := newNode(t, database)
	whole := n.serve
	n.serve = func(w http.ResponseWriter, r *http.Request) {
		switch n.requests.Load() {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			_, _ = w.Write([]byte("x"))
		default:
			whole(w, r)
		}
	}
	if out, err := n.run("RESTORE_TRY_FOR=60"); err != nil || strings.Count(out, "trying again") != 2 {
		t.Fatalf("%v\n%s", err, out)
	}
	n.restored()
}

// A script that is killed while it downloads succeeds when it runs again.
func TestKilled(t *testing.T) {
	n := newNode(t, database)
	whole, killed := n.serve, n.command()
	killed.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	n.serve = func(_ http.ResponseWriter, r *http.Request) {
		if err := syscall.Kill(-killed.Process.Pid, syscall.SIGKILL); err != nil { // with the program that downloads
			t.Error(err)
		}
		<-r.Context().Done()
	}
	testenv.Must(t, killed.Start())
	if killed.Wait() == nil {
		t.Fatal("it was not killed")
	}
	n.serve = whole
	if exists(filepath.Join(n.data, "member")) {
		t.Fatal("data is left")
	}
	if out, err := n.run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n.restored()
}

// Bootstrap data in the format of cloud-init is a template of jinja.
func TestScriptIsNoTemplate(t *testing.T) {
	for _, begin := range []string{"{{", "{%", "{#"} {
		if strings.Contains(restorescript.Script, begin) {
			t.Errorf("the script contains %q, by which cloud-init would change it", begin)
		}
	}
}
