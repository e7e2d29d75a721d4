package check

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/cluster-api/standalone/internal/readonly"
)

// workloads are the connections of our managers to workload clusters. They only read.
type workloads struct {
	// disabled is whether there are none.
	disabled bool

	mu sync.Mutex
	// servers are the addresses of the API servers, with the names of the Clusters.
	servers map[string]string
	// answered and failed are the servers that have answered a request, or have not.
	answered, failed map[string]bool
	// open is the number of requests to each server that wait for an answer, without watches.
	open map[string]int
	// refused are the requests that were not sent.
	refused map[refusal]bool
}

// refusal is a request that was not sent to the workload cluster of a Cluster.
type refusal struct{ cluster, method, path string }

func newWorkloads(disabled bool) *workloads {
	return &workloads{
		disabled: disabled, servers: map[string]string{}, answered: map[string]bool{}, failed: map[string]bool{}, open: map[string]int{},
		refused: map[refusal]bool{},
	}
}

// add notes the address of a Cluster's API server.
func (w *workloads) add(cluster, server string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[strings.TrimSuffix(server, "/")] = cluster
}

// wrap wraps the transport of a connection.
func (w *workloads) wrap(next http.RoundTripper) http.RoundTripper {
	return &readonly.Transport{Next: &observed{workloads: w, next: next}, Refused: w.refuse}
}

// errDisabled is the answer to all requests if workload clusters are not to be read.
var errDisabled = errors.New("workload clusters are not read (--workload-clusters=false)")

// observed counts the requests that are sent.
type observed struct {
	workloads *workloads
	next      http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o *observed) RoundTrip(r *http.Request) (*http.Response, error) {
	w := o.workloads
	if w.disabled {
		return nil, errDisabled
	}
	server := w.serverOf(r)
	watch := r.URL.Query().Get("watch") == "true"
	w.count(server, watch, 1)
	response, err := o.next.RoundTrip(r)
	w.count(server, watch, -1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && response.StatusCode < http.StatusBadRequest {
		w.answered[server] = true
	} else if err != nil || response.StatusCode != http.StatusNotFound {
		w.failed[server] = true
	}
	return response, err
}

// WrappedRoundTripper returns the next transport, for libraries that look for connections to close.
func (o *observed) WrappedRoundTripper() http.RoundTripper { return o.next }

func (w *workloads) count(server string, watch bool, n int) {
	if watch {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[server] += n
}

// serverOf returns the known server that a request is for, or its host. Several clusters may have servers at different paths of a host.
func (w *workloads) serverOf(r *http.Request) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	host := r.URL.Scheme + "://" + r.URL.Host
	best := host
	for server := range w.servers {
		if strings.HasPrefix(host+r.URL.Path+"/", server+"/") && len(server) > len(best) {
			best = server
		}
	}
	return best
}

// refuse notes a request that is not sent. What would not have been stored is left out.
func (w *workloads) refuse(r *http.Request) {
	if isQuestion(r) {
		return
	}
	server := w.serverOf(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	cluster := w.servers[server]
	if cluster == "" {
		cluster = server
	}
	path := strings.TrimPrefix(r.URL.Scheme+"://"+r.URL.Host+r.URL.Path, server)
	w.refused[refusal{cluster, r.Method, path}] = true
}

// isQuestion reports whether a request that is not a GET stores nothing.
func isQuestion(r *http.Request) bool {
	last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	return r.URL.Query().Has("dryRun") || slices.Contains([]string{
		"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews", "tokenreviews",
	}, last)
}

// waiting returns the Clusters whose API servers have not answered their first request, or an open one.
func (w *workloads) waiting() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for server, n := range w.open {
		if n > 0 && !w.failed[server] {
			found = append(found, w.servers[server])
		}
	}
	slices.Sort(found)
	return found
}

// unread returns the Clusters that have a kubeconfig, and whose API server has never answered, or not to all requests.
func (w *workloads) unread() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for server, cluster := range w.servers {
		if !w.answered[server] || w.failed[server] {
			found = append(found, cluster)
		}
	}
	slices.Sort(found)
	return found
}

const portForward = "/portforward"

// etcd returns the Clusters whose etcd our managers have asked about its health, and have got no answer.
func (w *workloads) etcd() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[string]bool{}
	for r := range w.refused {
		if strings.HasSuffix(r.path, portForward) {
			found[r.cluster] = true
		}
	}
	return found
}

// writes returns the requests that would have changed workload clusters, sorted.
func (w *workloads) writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[string]bool{}
	for r := range w.refused {
		if !strings.HasSuffix(r.path, portForward) {
			found[fmt.Sprintf("%s: %s %s", r.cluster, r.method, r.path)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
