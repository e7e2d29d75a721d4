package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/release/attestation"
	"sigs.k8s.io/cluster-api/release/image"
	"sigs.k8s.io/cluster-api/release/signature"
)

// TestDigests checks that manifests have the digests of images that were built, and that those of other images are an error.
func TestDigests(t *testing.T) {
	components, err := loadComponents(root)
	if err != nil {
		t.Fatal(err)
	}
	list := image.List{Registry: "example.org/images", Version: "v2.0.5", Images: map[string]image.Built{}}
	for _, c := range components {
		list.Images[c.Image] = image.Built{Digest: "sha256:" + strings.Repeat("1", 64)}
	}
	for _, test := range []struct {
		reason, problem string
		change          func(*image.List)
	}{
		{reason: "all images are listed", change: func(*image.List) {}},
		{reason: "another version", problem: "build it with the same version and registry", change: func(l *image.List) { l.Version = "v2.0.4" }},
		{reason: "another registry", problem: "build it with the same version and registry", change: func(l *image.List) { l.Registry = "other" }},
		{reason: "a missing image", problem: "does not have the image example.org/images/capd-manager:v2.0.5", change: func(l *image.List) { delete(l.Images, "capd-manager") }},
	} {
		t.Run(test.reason, func(t *testing.T) {
			changed := list
			changed.Images = maps.Clone(list.Images)
			test.change(&changed)
			path, out := filepath.Join(t.TempDir(), "images.json"), t.TempDir()
			if err := changed.Write(path); err != nil {
				t.Fatal(err)
			}
			err := run(t.Context(), []string{"--root", root, "--version", "v2.0.5", "--registry", "example.org/images", "--images", path, "--out", out}, os.Getenv)
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("got %v, want an error with %q", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(filepath.Join(out, "cluster-api", "v2.0.5", "core-components.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if want := "image: example.org/images/cluster-api-controller:v2.0.5@sha256:" + strings.Repeat("1", 64) + "\n"; !strings.Contains(string(content), want) {
				t.Errorf("the manifests have no line %q", want)
			}
		})
	}
}

// TestSeal checks that checksums and provenance have all files, and that their signatures are those of the key.
func TestSeal(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"clusterctl-linux-amd64", "metadata.yaml"} {
		if err := f.write(name, "test", 0o600, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := seal(t.Context(), f, attestation.Build{Target: "release-all", Version: "v2.0.5"}, key); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"SHA256SUMS", "SHA256SUMS.sig", "cosign.pub", "provenance.json"} {
		if files[name], err = os.ReadFile(filepath.Join(f.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	verifier, err := signature.ParseVerifier(files["cosign.pub"])
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Blob(t.Context(), files["SHA256SUMS"], files["SHA256SUMS.sig"]); err != nil {
		t.Errorf("the signature of the checksums: %v", err)
	}
	var want []string
	for _, name := range []string{"clusterctl-linux-amd64", "metadata.yaml", "provenance.json"} {
		content, err := os.ReadFile(filepath.Join(f.path, name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		want = append(want, hex.EncodeToString(sum[:])+"  "+name)
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(files["SHA256SUMS"])), "\n")); diff != "" {
		t.Errorf("checksums: %s", diff)
	}
	raw, err := verifier.Envelope(t.Context(), files["provenance.json"])
	if err != nil {
		t.Fatal(err)
	}
	var statement attestation.Statement
	if err := json.Unmarshal(raw, &statement); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range statement.Subject {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"clusterctl-linux-amd64", "metadata.yaml"}) {
		t.Errorf("the provenance is of %v", names)
	}
}

// TestHardened checks what restricted Pods and containers with limits require of the manifests.
func TestHardened(t *testing.T) {
	out := t.TempDir()
	if err := run(t.Context(), []string{"--root", root, "--version", "v2.0.5", "--out", out}, os.Getenv); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(out, "*", "v2.0.5", "*-components*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("got %v, %v", files, err)
	}
	for _, file := range files {
		objects, err := readObjects(file)
		if err != nil {
			t.Fatal(err)
		}
		limit := "${CAPI_MEMORY_LIMIT:=2Gi}"
		if filepath.Base(file) == "operator-components.yaml" {
			limit = "2Gi" // It is applied as it is.
		}
		for _, o := range objects {
			if o.GetKind() != "Deployment" {
				continue
			}
			raw, err := json.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				`"readOnlyRootFilesystem":true`, `"allowPrivilegeEscalation":false`, `"capabilities":{"drop":["ALL"]}`, `"seccompProfile":{"type":"RuntimeDefault"}`,
				`"resources":{"limits":{"memory":"` + limit + `"},"requests":{"memory":"64Mi"}}`,
				`{"name":"CONTAINER_MEMORY_LIMIT","valueFrom":{"resourceFieldRef":{"resource":"limits.memory"}}}`,
			} {
				if !strings.Contains(string(raw), want) {
					t.Errorf("%s has no %s", o.GetName(), want)
				}
			}
			if socket := strings.Contains(string(raw), "docker.sock"); socket == strings.Contains(string(raw), `"runAsNonRoot":true`) {
				t.Errorf("%s must not run as root unless it uses the socket of Docker", o.GetName())
			}
		}
	}
}
