package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/standalone/internal/encryption"
)

// marker is the content of Secrets. It must never be on the disk as it is.
const marker = "7hi5-15-4-53cr37"

// Secrets are encrypted on the disk, and stay readable through a rotation, a kill, and the loss of the previous key.
func TestSecretsAreEncrypted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mgmt")
	keys := filepath.Join(t.TempDir(), "keys")
	args := []string{"--data-dir", dir, "--components=false", "--encryption-keys", keys}
	first := serve(t, args...)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"k": marker}}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if _, err := client(t, kubeconfig).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kill(t, first)
	wantNowhere(t, dir, marker)
	previous := keyNames(t, keys)
	if len(previous) != 1 {
		t.Fatalf("there are keys %v", previous)
	}

	second := serve(t, append(args, "--rotate-encryption-key")...)
	waitFor(t, "one new key", func() bool { now := keyNames(t, keys); return len(now) == 1 && now[0] != previous[0] })
	kill(t, second)
	wantNowhere(t, dir, marker)

	third := serve(t, args...)
	kept, err := client(t, kubeconfig).CoreV1().Secrets("default").Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil || string(kept.Data["k"]) != marker {
		t.Errorf("after the rotation the Secret is %v, %v", kept, err)
	}
	kill(t, third)

	if err := os.Remove(keys); err != nil {
		t.Fatal(err)
	}
	out, err := program(t, append([]string{"serve"}, args...)...).Output()
	if err == nil {
		t.Errorf("without the keys it should not start, it printed %s", out)
	}
	if _, err := os.Stat(keys); !os.IsNotExist(err) {
		t.Errorf("no key must be generated for data with missing keys: %v", err)
	}
}

// Unencrypted data of an older version is encrypted.
func TestPlainSecretsAreTakenOver(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mgmt")
	plain(t, dir, &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s", UID: "1"},
		Data:       map[string][]byte{"k": []byte(marker)},
	})
	running := serve(t, "--data-dir", dir, "--components=false")
	keys := filepath.Join(dir, "encryption-keys.yaml")
	waitFor(t, "plain text to be rejected", func() bool {
		content, err := os.ReadFile(keys)
		return err == nil && !strings.Contains(string(content), "identity")
	})
	got, err := client(t, filepath.Join(dir, "kubeconfig")).CoreV1().Secrets("default").Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil || string(got.Data["k"]) != marker {
		t.Errorf("the Secret is %v, %v", got, err)
	}
	kill(t, running)
}

// The audit log has users and requests, and no contents.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(t.TempDir(), "audit.log")
	serve(t, "--data-dir", dir, "--components=false", "--unsafe-no-fsync", "--audit-log-path", log)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"k": marker}}
	if _, err := client(t, filepath.Join(dir, "kubeconfig")).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the request in the log", func() bool {
		content, err := os.ReadFile(log)
		return err == nil && regexp.MustCompile(`"verb":"create","user":{"username":"kubernetes-admin".*"resource":"secrets"`).Match(content)
	})
	wantNowhere(t, filepath.Dir(log), marker)
}

// plain writes a Secret into the etcd of a data directory as an API server without encryption does.
func plain(t *testing.T, dir string, secret *corev1.Secret) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(dir, "etcd")
	cfg.LogLevel = "fatal"
	cfg.ListenPeerUrls = nil
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(t.TempDir(), "s")}}
	nowhere := []url.URL{{Scheme: "http", Host: "localhost:0"}}
	cfg.AdvertisePeerUrls, cfg.AdvertiseClientUrls = nowhere, nowhere
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	<-etcd.Server.ReadyNotify()
	raw, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	kv := clientv3.KV(v3client.New(etcd.Server))
	if _, err := kv.Put(context.Background(), encryption.SecretsPrefix+secret.Namespace+"/"+secret.Name, string(raw)); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, p *process) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
}

// wantNowhere fails if a file in a directory contains the text.
func wantNowhere(t *testing.T, dir, text string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			t.Errorf("%s contains a Secret's content", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("reading %d files of %s: %v", files, dir, err)
	}
}

// keyNames lists the names of the keys in a file.
func keyNames(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, match := range regexp.MustCompile(`name: (\S+)`).FindAllSubmatch(content, -1) {
		names = append(names, string(match[1]))
	}
	return names
}

// waitFor looks until something is so.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline.C:
			t.Fatalf("waiting for %s", what)
		case <-tick.C:
		}
	}
}
