package bootstrap

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"sigs.k8s.io/cluster-api/backup/restorescript"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database/databasetest"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

func goodRestore() Restore {
	return Restore{restorescript.Config{URL: "http://example.com/backup", SHA256: strings.Repeat("ab", 32), Key: databasetest.Key, IV: databasetest.IV}}
}

const goodJSON = `{"url": "http://example.com/backup", "sha256": "abababababababababababababababababababababababababababababababab", ` +
	`"key": "` + databasetest.Key + `", "iv": "` + databasetest.IV + `"}`

func TestReadRestore(t *testing.T) {
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.PEM()
	if err != nil {
		t.Fatal(err)
	}
	const script = "- {path: /etc/cluster-api/restore.sh, content: 'exit 7'}\n"
	const run, initialize = "/bin/sh /etc/cluster-api/restore.sh", "kubeadm init --config /run/kubeadm/kubeadm.yaml"
	const ignoring = initialize + " --ignore-preflight-errors=Swap,DirAvailable--var-lib-etcd && echo success"
	cloudConfig := func(files, config, kind string, commands ...string) string {
		path := map[bool]string{true: initPath, false: joinPath}[kind == "init"]
		text := "#cloud-config\nwrite_files:\n- path: /etc/kubernetes/pki/ca.crt\n  content: |\n    " +
			strings.ReplaceAll(strings.TrimSpace(string(pair.Certificate)), "\n", "\n    ") + "\n" + files +
			"- path: " + path + "\n  content: |\n    " + strings.ReplaceAll(config, "\n", "\n    ") + "\nruncmd:\n"
		for _, c := range commands {
			text += "- '" + c + "'\n"
		}
		return text
	}
	file := func(text string) string { return "- {path: /etc/cluster-api/restore.json, content: '" + text + "'}\n" }
	const plain = "kind: ClusterConfiguration"
	join := "kind: JoinConfiguration\ndiscovery: {file: {}}\n"
	good := goodRestore()
	for _, test := range []struct {
		reason, data, format string
		want                 *Restore
		problem              string
	}{
		{reason: "no restore", data: cloudConfig("", plain, "init", initialize)},
		{reason: "files without the command are not used", data: cloudConfig(script+file(goodJSON), plain, "init", initialize)},
		{reason: "a restore", data: cloudConfig(script+file(goodJSON), plain, "init", run, ignoring), want: &good},
		{reason: "a restore as the bootstrap provider renders it", want: &good,
			data: cloudConfig(script+file(goodJSON), plain, "init", "{ mv -f a b || test -e b; } && "+run+" && mv b a || exit 1", ignoring)},
		{reason: "other commands before it", data: cloudConfig(script+file(goodJSON), plain, "init", "hostname x", run, ignoring), want: &good},
		{reason: "a command that comes too late", data: cloudConfig(script+file(goodJSON), plain, "init", ignoring, run)},
		{reason: "the check is ignored by the configuration",
			data: cloudConfig(script+file(goodJSON), "kind: InitConfiguration\nnodeRegistration: {ignorePreflightErrors: [diravailable--VAR-lib-etcd]}", "init", run, initialize), want: &good},
		{reason: "all checks are ignored",
			data: cloudConfig(script+file(goodJSON), "kind: InitConfiguration\nnodeRegistration: {ignorePreflightErrors: [all]}", "init", run, initialize), want: &good},
		{reason: "the check is not ignored", data: cloudConfig(script+file(goodJSON), plain, "init", run, initialize), problem: "[ERROR DirAvailable--var-lib-etcd]"},
		{reason: "no script", data: cloudConfig(file(goodJSON), plain, "init", run, ignoring), problem: "does not have both"},
		{reason: "no configuration", data: cloudConfig(script, plain, "init", run, ignoring), problem: "does not have both"},
		{reason: "no JSON", data: cloudConfig(script+file("secret"), plain, "init", run, ignoring), problem: "restore.json is invalid: it is not a JSON object"},
		{reason: "an unknown field", data: cloudConfig(script+file(strings.Replace(goodJSON, `"iv"`, `"secret"`, 1)), plain, "init", run, ignoring), problem: "restore.json is invalid: it is not a JSON object"},
		{reason: "another scheme", data: cloudConfig(script+file(strings.Replace(goodJSON, "http:", "file:", 1)), plain, "init", run, ignoring), problem: "url: must be an absolute URL"},
		{reason: "a short hash", data: cloudConfig(script+file(strings.Replace(goodJSON, "abab", "ab", 1)), plain, "init", run, ignoring), problem: "sha256: must have 64"},
		{reason: "a short key", data: cloudConfig(script+file(strings.Replace(goodJSON, "0001", "", 1)), plain, "init", run, ignoring), problem: "key: must have 64"},
		{reason: "an iv with other characters", data: cloudConfig(script+file(strings.Replace(goodJSON, "f0f1", "g0f1", 1)), plain, "init", run, ignoring), problem: "iv: must have 32"},
		{reason: "a joining control plane machine has another check, too", data: cloudConfig(script+file(goodJSON), join+"controlPlane: {}", "join", run, "kubeadm join"), problem: "[ERROR DirAvailable--var-lib-etcd]"},
		{reason: "a joining control plane machine with data does not join",
			data: cloudConfig(script+file(goodJSON), join+"controlPlane: {}", "join", run, "kubeadm join --ignore-preflight-errors=all"), problem: "does not join the cluster"},
		{reason: "a worker has no etcd", data: cloudConfig(script+file(goodJSON), join, "join", run, "kubeadm join")},
		{reason: "with external etcd, the data is not used",
			data: cloudConfig(script+file(goodJSON), "kind: ClusterConfiguration\netcd: {external: {endpoints: [x]}}", "init", run, initialize)},
		{reason: "Ignition", format: "ignition", want: &good, data: strings.Replace(
			document("eval '\n"+run+"\n'\nkubeadm init --config /etc/kubeadm.yml --ignore-preflight-errors DirAvailable--var-lib-etcd", plain, string(pair.Certificate)),
			`"files":[`, `"files":[{"filesystem":"root","path":"/etc/cluster-api/restore.sh","contents":{"source":"data:,x"}},`+
				`{"filesystem":"root","path":"/etc/cluster-api/restore.json","contents":{"source":"data:,`+strings.ReplaceAll(strings.ReplaceAll(goodJSON, `"`, "%22"), " ", "%20")+`"}},`, 1)},
	} {
		t.Run(test.reason, func(t *testing.T) {
			d, err := Read([]byte(test.data), test.format)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Restore); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if (d.Problem == "") != (test.problem == "") || !strings.Contains(d.Problem, test.problem) || strings.Contains(d.Problem, "secret") {
				t.Errorf("problem %q, want %q", d.Problem, test.problem)
			}
			text, err := d.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := Decode(text); err != nil || !cmp.Equal(again, d) {
				t.Errorf("decoding it again: %v", err)
			}
		})
	}
}

type powered struct{}

func (powered) Dead(string) bool                             { return false }
func (powered) MarkUnreachable(_ *unstructured.Unstructured) {}

// backup returns the data directory of an etcd with one object, as a gzipped tar.
func backup(t *testing.T) []byte {
	t.Helper()
	s, err := store.Open(store.Options{
		Clock: clocktesting.NewFakeClock(time.Now()), UIDs: rand.NewChaCha8([32]byte{}), Names: rand.New(rand.NewPCG(1, 2)),
		Limit: store.DefaultLimit, Power: powered{},
	})
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName("n")
	if _, err := s.Create(store.Namespaces(), u, store.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	f, err := database.Write(s.Versions(), database.Membership{Members: []database.Member{{ID: 1, Name: "a"}}, Term: 1, Index: 1, Version: "3.6.0", Versioned: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return databasetest.Pack(t, databasetest.Restore(t, databasetest.Snapshot(t, f.Reader()), 1000))
}

func TestFetch(t *testing.T) {
	packed := backup(t)
	content, sum := databasetest.Encrypt(t, packed)
	garbage, garbageSum := databasetest.Encrypt(t, []byte("no archive"))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /good", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	mux.HandleFunc("GET /garbage", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(garbage) })
	mux.HandleFunc("GET /short", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content[:len(content)/2]) })
	mux.HandleFunc("GET /broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000000")
		_, _ = w.Write(content)
	})
	mux.Handle("GET /moved", http.RedirectHandler("/good", http.StatusFound))
	server := httptest.NewServer(mux)
	defer server.Close()
	closed := httptest.NewServer(mux)
	closed.Close()
	other := strings.Repeat("0", 64)
	for _, test := range []struct {
		reason, url, sum, key string
		want                  string // the error; empty for success
	}{
		{"the data directory of an etcd", server.URL + "/good", sum, databasetest.Key, ""},
		{"a file that does not exist", server.URL + "/x?secret", sum, databasetest.Key, "responded with 404 Not Found"},
		{"redirects are not followed", server.URL + "/moved", sum, databasetest.Key, "responded with 302 Found"},
		{"no server", closed.URL + "/good?secret", sum, databasetest.Key, "connection refused"},
		{"a download that breaks", server.URL + "/broken", sum, databasetest.Key, "unexpected EOF"},
		{"an incomplete file", server.URL + "/short", sum, databasetest.Key, "the SHA-256 of the data of etcd is"},
		{"another hash", server.URL + "/good", other, databasetest.Key, "want " + other},
		{"another key", server.URL + "/good", sum, other, "not a gzipped tar"},
		{"a file that is no archive", server.URL + "/garbage", garbageSum, databasetest.Key, "not a gzipped tar"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			d, err := Restore{restorescript.Config{URL: test.url, SHA256: test.sum, Key: test.key, IV: databasetest.IV}}.Fetch(t.Context())
			if test.want == "" {
				if err != nil || len(d.Content.Objects) != 1 {
					t.Fatalf("%+v, %v", d, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error with %q", err, test.want)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), test.key) && test.key != test.sum {
				t.Errorf("the error contains a secret: %v", err)
			}
		})
	}
}
