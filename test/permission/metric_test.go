package permission

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// checkMetrics reads the metrics of all managers as a ServiceAccount with that permission, and checks the names that
// dashboards and alerts use.
func (w *world) checkMetrics() {
	w.t.Helper()
	token := w.scraper()
	var all []string
	for _, m := range w.managers {
		if code, _ := w.scrape(m.diagnostics, ""); code != http.StatusUnauthorized {
			w.t.Errorf("%s responds to unauthenticated requests with %d", m.Name, code)
		}
		code, metrics := w.scrape(m.diagnostics, token)
		if code != http.StatusOK {
			w.t.Errorf("%s responds to authorized requests with %d", m.Name, code)
			continue
		}
		names := append(standardMetrics(), "capi_reconcile_total", "capi_reconcile_time_seconds")
		if m.Component == "fleet" { // It has no webhooks.
			names = slices.DeleteFunc(names, func(n string) bool { return strings.Contains(n, "_webhook_") })
		}
		if w.connected && (m.Component == "core" || m.Component == "control-plane-kubeadm") {
			names = append(names, connectionMetrics()...)
		}
		if m.Component == "infrastructure-in-memory" {
			names = append(names, inMemoryMetrics()...)
		}
		if m.Component == "core" && w.extended {
			names = append(names, "capi_runtime_sdk_requests_total", "capi_runtime_sdk_request_duration_seconds")
		}
		// A manager with nothing to do makes its first reconcile, of a definition, a moment after it is ready.
		w.eventually("the metrics of "+m.Name, func(context.Context) error {
			_, metrics = w.scrape(m.diagnostics, token)
			for _, name := range names {
				if !slices.Contains(metrics, name) {
					return fmt.Errorf("it has no metric %s", name)
				}
			}
			return nil
		})
		all = append(all, metrics...)
	}
	if w.connected {
		w.checkMonitored(all)
	}
}

// checkMonitored checks that the managers serve all metrics that the alerts and the dashboard of a release read of managers.
func (w *world) checkMonitored(served []string) {
	w.t.Helper()
	selector := regexp.MustCompile(`(\w+)\{job=\\?"cluster-api\\?"`)
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		raw, err := os.ReadFile(filepath.Join(w.Root, "release", "files", file))
		if err != nil {
			w.t.Fatal(err)
		}
		matches := selector.FindAllStringSubmatch(string(raw), -1)
		if len(matches) < 8 {
			w.t.Errorf("%s reads %d metrics of managers", file, len(matches))
		}
		for _, match := range matches {
			if name := strings.TrimSuffix(match[1], "_bucket"); name != "up" && !slices.Contains(served, name) {
				w.t.Errorf("%s reads %s, which no manager has", file, name)
			}
		}
	}
}

// standardMetrics returns metrics of controller-runtime and client-go, as literals.
func standardMetrics() []string {
	return []string{
		"controller_runtime_active_workers", "controller_runtime_max_concurrent_reconciles", "controller_runtime_reconcile_errors_total",
		"controller_runtime_reconcile_panics_total", "controller_runtime_reconcile_time_seconds", "controller_runtime_reconcile_total",
		"controller_runtime_terminal_reconcile_errors_total", "controller_runtime_webhook_latency_seconds",
		"controller_runtime_webhook_panics_total", "controller_runtime_webhook_requests_in_flight",
		"controller_runtime_webhook_requests_total", "workqueue_adds_total", "workqueue_depth",
		"workqueue_longest_running_processor_seconds", "workqueue_queue_duration_seconds", "workqueue_retries_total",
		"workqueue_unfinished_work_seconds", "workqueue_work_duration_seconds", "leader_election_master_status",
		"rest_client_requests_total", "go_goroutines", "go_memstats_heap_alloc_bytes", "process_cpu_seconds_total",
		"process_resident_memory_bytes",
	}
}

// connectionMetrics returns metrics of connections to workload clusters, which alerts for Cluster API v1.14 read.
func connectionMetrics() []string {
	return []string{"capi_cluster_cache_connection_up", "capi_cluster_cache_healthcheck", "capi_cluster_cache_healthchecks_total"}
}

// inMemoryMetrics returns metrics of the in-memory provider's workload API servers.
func inMemoryMetrics() []string {
	return []string{
		"capim_apiserver_request_total", "capim_apiserver_request_duration_seconds", "capim_etcd_request_duration_seconds",
	}
}

// scraper creates a ServiceAccount that may only read metrics, and returns its token.
func (w *world) scraper() string {
	w.t.Helper()
	const name, namespace = "scraper", "default"
	ctx := w.t.Context()
	admin, err := kubernetes.NewForConfig(w.Config)
	if err != nil {
		w.t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: name}
	if _, err = admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}}}
	if _, err = admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}
	if _, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	// The API server's authorizer caches bindings.
	w.eventually("the scraper may read metrics", func(context.Context) error {
		if code, _ := w.scrape(w.managers[0].diagnostics, token.Status.Token); code != http.StatusOK {
			return fmt.Errorf("status %d", code)
		}
		return nil
	})
	return token.Status.Token
}

// scrape returns the names of metrics. The manager's certificate is self-signed.
func (w *world) scrape(address, token string) (code int, names []string) {
	w.t.Helper()
	client := &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] == "#" && fields[1] == "TYPE" {
			names = append(names, fields[2])
		}
	}
	return response.StatusCode, names
}
