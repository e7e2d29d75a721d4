package serve

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/restorescript"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/restore"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestServe: who knows the path gets the data, and nobody else anything.
func TestServe(t *testing.T) {
	build, dir := object.Builder{ClusterName: "c"}, t.TempDir()
	r := &fleetv1.ControlPlaneRestore{ObjectMeta: build.Meta("ControlPlaneRestore", "r")}
	r.Status.Backup = &fleetv1.RestoredBackup{StoreName: "disk"}
	r.Status.Data = &fleetv1.RestoreDataStatus{Key: "default/c/data", SizeBytes: 4}
	secret := &corev1.Secret{ObjectMeta: build.Meta("Secret", restore.SecretName(r))}
	api := fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{fleetv1.AddToScheme}, Objects: []client.Object{
		r, secret, &fleetv1.BackupStore{ObjectMeta: build.Meta("BackupStore", "disk"), Spec: fleetv1.BackupStoreSpec{
			Directory: &fleetv1.DirectoryStore{Path: "d"},
		}},
	}})
	testenv.Must(t, os.MkdirAll(filepath.Join(dir, "d", "default", "c"), 0o700),
		os.WriteFile(filepath.Join(dir, "d", "default", "c", "data"), []byte("data"), 0o600),
		os.WriteFile(filepath.Join(dir, "d", "default", "c", "other"), []byte("other"), 0o600))
	s := &Server{Restores: api, Secrets: api, Opener: backupstore.Opener{Stores: api, Secrets: api, DataDir: dir}}
	testenv.Must(t, s.Listen(t.Context(), "127.0.0.1:0", ""))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Start(ctx) }()
	at := s.URL(r)
	if !s.Serves(at) || s.Serves("http://127.0.0.1:1/restore/default/r/x") {
		t.Errorf("it serves %s", at)
	}
	config, err := restorescript.Config{
		URL: at, SHA256: strings.Repeat("0", 64), Key: strings.Repeat("0", 64), IV: strings.Repeat("0", 32),
	}.Encode()
	testenv.Must(t, err)
	live := &corev1.Secret{}
	testenv.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(secret), live))
	live.Data = map[string][]byte{fleetv1.RestoreConfigKey: config}
	testenv.Must(t, api.Update(t.Context(), live))
	base := at[:strings.LastIndex(at, "/")+1]
	for _, tt := range []struct {
		reason, url string
		want        string
	}{
		{"the path of the data", at, "200 data"},
		{"another secret", base + "x", "404"},
		{"no secret", base, "404"},
		{"another restore", strings.Replace(at, "/r/", "/x/", 1), "404"},
		{"a path that leaves it", base + "../../../d/default/c/other", "404"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.url, http.NoBody)
			testenv.Must(t, err)
			response, err := http.DefaultClient.Do(request)
			testenv.Must(t, err)
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			testenv.Must(t, err)
			if got := response.Status[:3] + " " + string(body); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	stop()
	testenv.Must(t, <-ended)
}

// TestPortIsKept: the URL that a Machine has is valid after the manager was killed, which otherwise never has that port again.
func TestPortIsKept(t *testing.T) {
	r, dir := &fleetv1.ControlPlaneRestore{}, filepath.Join(t.TempDir(), "later")
	opened := func() *Server {
		s := &Server{Opener: backupstore.Opener{DataDir: dir}}
		testenv.Must(t, s.Listen(t.Context(), "127.0.0.1:0", ""))
		t.Cleanup(func() { _ = s.listener.Close() })
		return s
	}
	first := opened()
	at := first.URL(r)
	testenv.Must(t, first.listener.Close())
	second := opened()
	if !second.Serves(at) {
		t.Errorf("after a restart, %s serves, not %s", second.base, at)
	}
	if third := opened(); third.Serves(at) {
		t.Errorf("%s is that of a process that runs", third.base)
	}
}
