package remote

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// altered is the kubeconfig of an API, changed in one place.
func (a *api) altered(t *testing.T, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	t.Helper()
	config, err := clientcmd.Load(a.kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	context := config.Contexts[config.CurrentContext]
	change(config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo])
	raw, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// refusal waits until an attempt to connect has failed, and returns the error of Get.
func (w *world) refusal(key types.NamespacedName) string {
	w.t.Helper()
	if _, err := w.clusters.Get(w.t.Context(), key); !IsNotConnected(err) {
		w.t.Fatal(err)
	}
	w.pauses.next(w.t)
	_, err := w.clusters.Get(w.t.Context(), key)
	if !IsNotConnected(err) {
		w.t.Fatalf("got %v, want that it is not connected", err)
	}
	return err.Error()
}

// All users who may write Secrets in the Cluster's namespace can write kubeconfig Secrets.
func TestKubeconfigUsesNothingOfTheManager(t *testing.T) {
	dir := t.TempDir()
	ran, secret := filepath.Join(dir, "ran"), filepath.Join(dir, "token")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reason string
		change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		want   string
	}{
		"Exec": {"a program would run in the manager", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "touch", Args: []string{ran}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
		}, "users[].user.exec: it runs a program in the manager (only allowed with --workload-cluster-allow=exec)"},
		"AuthProvider": {"so it would here", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "gcp"}
		}, "users[].user.auth-provider: it runs a program in the manager"},
		"TokenFile": {"the manager's own token would be sent", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.ClientCertificateData, u.ClientKeyData, u.TokenFile = nil, nil, secret
		}, "users[].user.tokenFile: it reads a file of the manager (only allowed with --workload-cluster-allow=files)"},
		"TokenAndFile": {"also beside a token", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token, u.TokenFile = "t", secret
		}, "users[].user.tokenFile"},
		"ClientCertificate": {"it would reveal which files exist", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.ClientCertificateData, u.ClientCertificate = nil, secret
		}, "users[].user.client-certificate: it reads"},
		"ClientKey": {"and this", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.ClientKeyData, u.ClientKey = nil, secret
		}, "users[].user.client-key: it reads"},
		"Authority": {"and this", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData, c.CertificateAuthority = nil, secret
		}, "clusters[].cluster.certificate-authority: it reads"},
		"PlainHTTP": {"services inside the management cluster often speak it", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = strings.Replace(c.Server, "https", "http", 1)
		}, "server without https (only allowed with --workload-cluster-allow=http)"},
		"OtherScheme": {"it cannot be allowed", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = "file:///etc/passwd"
		}, "server without https"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPI(t, serving)
			w := newWorld(t)
			w.listen()
			w.secret(blue, server.altered(t, c.change))
			got := w.refusal(blue)
			if !strings.Contains(got, c.want) {
				t.Errorf("%s: got %q, want that it names %q", c.reason, got, c.want)
			}
			if strings.Contains(got, "hunter2") || strings.Contains(got, dir) {
				t.Errorf("the reason quotes the kubeconfig: %s", got)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("the program was run")
			}
			if asked := server.asked(""); len(asked) != 0 {
				t.Errorf("the server was asked: %q", asked)
			}
			w.await("connection blue") // so that controllers state it
		})
	}
}

func TestKubeconfigMayBeRichInline(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.altered(t, func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		c.TLSServerName, c.DisableCompression = "127.0.0.1", true
		c.Server += "/prefix/.."
		u.Token, u.Impersonate, u.ImpersonateGroups = "t", "someone", []string{"g"}
	}))
	config := w.connected(blue).Config
	if config.BearerToken != "t" || config.Impersonate.UserName != "someone" || config.ServerName != "127.0.0.1" || !config.DisableCompression {
		t.Errorf("what is inline must be used, got %+v", config.Impersonate)
	}
}

// elsewhere counts requests that must not be sent.
func elsewhere(t *testing.T) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(w, http.StatusOK, map[string]any{"kind": "NodeList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}})
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestRedirectsAreRejected(t *testing.T) {
	to, asked := elsewhere(t)
	server := newAPI(t, serving)
	server.handle(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	})
	w := newWorld(t)
	w.secret(blue, server.kubeconfig(t))
	if got := w.refusal(blue); !strings.Contains(got, "a redirect to another address") {
		t.Errorf("got %q, want that it names the redirect", got)
	}
	if asked.Load() != 0 {
		t.Error("the redirect was followed")
	}
}

func TestRedirectsOfRequestsAreRejected(t *testing.T) {
	to, asked := elsewhere(t)
	server := newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	cluster := w.connected(blue)
	server.handle(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusFound)
	})
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.ConfigMap{}); err == nil {
		t.Error("a redirected request cannot succeed")
	}
	if asked.Load() != 0 {
		t.Error("the redirect was followed")
	}
}

// endless responds to lists with items until the client disconnects, or until much more than the limit was sent.
func endless(item string, sent *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{}`))
		const most = 600 << 20
		for chunk := strings.Repeat(","+item, 1+(64<<10)/len(item)); sent.Load() < most; {
			n, err := w.Write([]byte(chunk))
			if err != nil {
				return
			}
			sent.Add(int64(n))
		}
		_, _ = w.Write([]byte("]}"))
	}
}

func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func TestEndlessLists(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		item   string
		most   int64
	}{
		"OneObject":    {"no object is that large", `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 64<<20) + `"}}}`, 16 << 20},
		"SmallObjects": {"two bytes are decoded into a kilobyte", `{}`, 16 << 20},
		"Kept":         {"what is kept is bounded, too", `{"metadata":{"name":"n","labels":{"a":"` + strings.Repeat("x", 100<<10) + `"}}}`, 300 << 20},
		"NotKept":      {"what is dropped is not read without end", `{"metadata":{"name":"n"},"status":{"images":[{"names":["` + strings.Repeat("x", 1<<20) + `"]}]}}`, 300 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			if (testing.Short() || raceDetector()) && c.most > 100<<20 {
				t.Skip("reads hundreds of megabytes, for which the race detector takes longer than a page may take")
			}
			var sent atomic.Int64
			server := newAPI(t, serving)
			server.handle(endless(c.item, &sent))
			fine := newAPI(t, serving)
			w := newWorld(t)
			w.listen()
			w.secret(blue, server.kubeconfig(t))
			w.secret(green, fine.kubeconfig(t))
			if got := w.refusal(blue); !strings.Contains(got, "rejected: ") || !strings.Contains(got, " of more than ") {
				t.Errorf("%s: got %q, want that it is too much", c.reason, got)
			}
			if sent.Load() > c.most {
				t.Errorf("%s: %d MiB were read", c.reason, sent.Load()>>20)
			}
			w.connected(green)
		})
	}
}

func TestEndlessPages(t *testing.T) {
	server := newAPI(t, serving)
	server.handle(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, `{"kind":"NodeList","apiVersion":"v1","items":[],"metadata":{"resourceVersion":"1","continue":"on"}}`)
	})
	w := newWorld(t)
	w.secret(blue, server.kubeconfig(t))
	if got := w.refusal(blue); !strings.Contains(got, "an infinite list of Node") {
		t.Errorf("got %q, want that infinite lists are rejected", got)
	}
}

func TestPages(t *testing.T) {
	server := newAPI(t, serving)
	server.handle(func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Get("watch") != "":
			server.watch(w, r)
		case q.Get("limit") != "500" || q.Get("resourceVersion") != "":
			http.Error(w, "no limit", http.StatusBadRequest)
		case q.Get("continue") == "":
			_, _ = fmt.Fprint(w, `{"items":[{"metadata":{"name":"n1"}}],"kind":"NodeList","metadata":{"resourceVersion":"7","continue":"c"}}`)
		default:
			_, _ = fmt.Fprint(w, `{"kind":"NodeList","other":[{}],"metadata":{"resourceVersion":"8"},"items":[{"metadata":{"name":"n2"},"status":{"images":[{}]}}]}`)
		}
	})
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	cluster := w.connected(blue)
	list := &corev1.NodeList{}
	if err := cluster.List(t.Context(), list); err != nil || len(list.Items) != 2 {
		t.Errorf("both pages must be read, got %v and %v", list.Items, err)
	}
	server.awaitRequest(t, "watch=")
	if got := server.asked("watch=")[0]; !strings.Contains(got, "resourceVersion=7") {
		t.Errorf("the watch must start at the resource version of the list, it requested %s", got)
	}
}

// An infinite event is received over a watch, which is infinite, too.
func TestEndlessEvent(t *testing.T) {
	var sent atomic.Int64
	server := newAPI(t, serving)
	server.handle(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			server.serve(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"`))
		for chunk := []byte(strings.Repeat("x", 64<<10)); sent.Load() < 600<<20; {
			n, err := w.Write(chunk)
			if err != nil {
				return
			}
			sent.Add(int64(n))
		}
	})
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	if got := w.refusal(blue); !strings.Contains(got, "an event of more than 6Mi") {
		t.Errorf("got %q, want that it is too large", got)
	}
	if sent.Load() > 32<<20 {
		t.Errorf("%d MiB were read", sent.Load()>>20)
	}
}

// Many events of a usual size are no reason to end a watch, whatever they sum up to.
func TestManyEvents(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	before := w.connected(blue)
	server.awaitWatch(t)
	for i := range 100 {
		n := node("n1", fmt.Sprintf("fake://%d", i), fmt.Sprint(i))
		n.Status.Images = []corev1.ContainerImage{{Names: []string{strings.Repeat("x", 200<<10)}}}
		server.put(n)
		w.await("n1 of blue")
	}
	if before.ended.Err() != nil {
		t.Errorf("the connection ended: %v", context.Cause(before.ended))
	}
}

func TestLargeResponses(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	cluster := w.connected(blue)
	const size = 64 << 20
	for name, c := range map[string]struct {
		reason string
		code   int
		kind   string
		want   string
		not    string
	}{
		"Success": {"it is not read whole", 200, "application/json", "a response of more than 16Mi", ""},
		"Failure": {"nor is what explains a failure", 500, "application/json", "a failure of more than", ""},
		"Text":    {"what is no API server is not quoted", 500, "text/html", "", "xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			server.handle(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"` + strings.Repeat("x", size) + `"}}`))
			})
			err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.ConfigMap{})
			if err == nil || !strings.Contains(err.Error(), c.want) || c.not != "" && strings.Contains(err.Error(), c.not) || len(err.Error()) > 1000 {
				t.Errorf("%s: got %.300v, want %q", c.reason, err, c.want)
			}
		})
	}
}

// API servers send Retry-After. Waiting for it within a request would block the caller.
func TestRetryAfterIsIgnored(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	cluster := w.connected(blue)
	server.handle(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "86400")
		answer(w, http.StatusTooManyRequests, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429})
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.ConfigMap{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("got %v, want the answer, not that time ran out", err)
	}
	if n := len(server.asked("namespaces/a/configmaps/b")); n != 1 {
		t.Errorf("it was asked %d times, want once", n)
	}
}

// Neither a panic in a listener, which is a controller's code, nor one in a decoder, which is a library's, may end the process.
func TestPanicsEndTheConnectionOnly(t *testing.T) {
	bad, fine := newAPI(t, serving, node("n1", "", "1")), newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	w.clusters.mu.Lock()
	w.clusters.subscribers = append(w.clusters.subscribers, &subscriber{ctx: t.Context(), Events: Events{Watches: []Watch{{
		Object: &corev1.Node{}, Requests: nil, Changed: func(client.Object, client.Object) bool { return true },
	}}}})
	w.clusters.mu.Unlock()
	w.secret(blue, bad.kubeconfig(t))
	w.secret(green, fine.kubeconfig(t))
	if _, err := w.clusters.Get(t.Context(), blue); !IsNotConnected(err) {
		t.Fatal(err)
	}
	w.lost(blue)
	w.connected(green) // It has no Nodes that could be listened to.
	fine.awaitWatch(t)
	fine.put(node("n2", "", "2"))
	w.lost(green)
}

// Hundreds of clusters whose packets are dropped take a limited number of goroutines, and block no caller.
func TestUnresponsiveServers(t *testing.T) {
	const clusters = 300
	server := newAPI(t, serving)
	w := newWorld(t)
	o := w.clusters.options
	dial := (&net.Dialer{}).DialContext
	var waiting atomic.Int64
	o.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "192.0.2.") {
			waiting.Add(1)
			defer waiting.Add(-1)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return dial(ctx, network, address)
	}
	w.clusters = New(o)
	t.Cleanup(w.clusters.stop)
	w.listen()
	before := runtime.NumGoroutine()
	raw := server.kubeconfig(t)
	for i := range clusters {
		key := types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("hole-%d", i)}
		w.secret(key, []byte(strings.Replace(string(raw), server.URL, fmt.Sprintf("https://192.0.2.%d:%d", i%250, 6443+i/250), 1)))
		if _, err := w.clusters.Get(t.Context(), key); !IsConnecting(err) {
			t.Fatalf("got %v, want immediately that it is connecting", err)
		}
	}
	for deadline := time.After(patience); waiting.Load() < clusters; {
		select {
		case <-deadline:
			t.Fatalf("only %d are being dialed", waiting.Load())
		default:
			runtime.Gosched()
		}
	}
	if each := (runtime.NumGoroutine() - before) / clusters; each > 8 {
		t.Errorf("each costs %d goroutines", each)
	}
	w.secret(green, raw)
	w.connected(green)
}

// TestRequestsCanBeCancelled: libraries find the transport below ours; otherwise they write a warning each time a watch ends.
func TestRequestsCanBeCancelled(t *testing.T) {
	below := &http.Transport{}
	wrapper, ok := http.RoundTripper(&monitored{transport: below}).(utilnet.RoundTripperWrapper)
	if !ok || wrapper.WrappedRoundTripper() != http.RoundTripper(below) {
		t.Error("the transport cannot be found")
	}
}
