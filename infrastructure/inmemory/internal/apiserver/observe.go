package apiserver

import (
	"net/http"
	"time"

	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/etcd"
)

// Observer gets what the server did, for metrics. Its methods are called concurrently and should be quick.
type Observer interface {
	// ObserveRequest gets an answered API request; a watch counts as answered when it begins.
	ObserveRequest(Observation)
	// ObserveEtcd gets an answered call to etcd.
	ObserveEtcd(etcd.Call)
	// ForgetCluster is told of an endpoint that was closed.
	ForgetCluster(*Endpoint)
}

// Observation is one answered API request.
type Observation struct {
	// Endpoint is where the request arrived.
	Endpoint *Endpoint
	// Verb is the API's verb, such as get or watch; for other paths the HTTP method in lower case.
	Verb string
	// Group, Version, Resource and Subresource say what was asked for; empty for other paths.
	Group, Version, Resource, Subresource string
	// Scope is resource, namespace or cluster, by how much the request was about; empty for other paths.
	Scope string
	// DryRun tells that nothing was to be changed.
	DryRun bool
	// Code is the HTTP status.
	Code int
	// Duration is how long the answer took, or a watch to begin.
	Duration time.Duration
}

// ignore is the Observer of who has none.
type ignore struct{}

// ObserveRequest implements Observer.
func (ignore) ObserveRequest(Observation) {}

// ObserveEtcd implements Observer.
func (ignore) ObserveEtcd(etcd.Call) {}

// ForgetCluster implements Observer.
func (ignore) ForgetCluster(*Endpoint) {}

// recorder tells of the status code of an answer as soon as it is sent.
type recorder struct {
	http.ResponseWriter
	code   int
	answer func(code int)
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	r.answered(code)
	r.ResponseWriter.WriteHeader(code)
}

// answered notes the status code. Only the first counts.
func (r *recorder) answered(code int) {
	if r.code == 0 {
		r.code = code
		r.answer(code)
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func observation(e *Endpoint, r *http.Request, req *request, code int, took time.Duration) Observation {
	o := Observation{Endpoint: e, Verb: r.Method, Code: code, Duration: took}
	if req == nil {
		return o
	}
	o.Verb, o.DryRun, o.Subresource = req.verb, req.dryRun(), req.subresource
	o.Group, o.Version, o.Resource = req.resource.gvk.Group, req.resource.gvk.Version, req.resource.plural
	switch {
	case req.name != "":
		o.Scope = "resource"
	case req.namespace != "":
		o.Scope = "namespace"
	default:
		o.Scope = "cluster"
	}
	return o
}
