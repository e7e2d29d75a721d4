package apiserver

import (
	"net/http"
	"time"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
)

// Observer observes requests, for metrics. Its methods are called concurrently and should be fast.
type Observer interface {
	// ObserveRequest is called for a completed API request; a watch is completed when it starts.
	ObserveRequest(Observation)
	// ObserveEtcd is called for a completed call to etcd.
	ObserveEtcd(etcd.Call)
	// ForgetCluster is called when an endpoint is closed.
	ForgetCluster(*Endpoint)
}

// Observation is a completed API request.
type Observation struct {
	// Endpoint is where the request arrived.
	Endpoint *Endpoint
	// Verb is the API verb, such as get or watch; for other paths the HTTP method in lower case.
	Verb string
	// Group, Version, Resource and Subresource are those of the request; empty for other paths.
	Group, Version, Resource, Subresource string
	// Scope is resource, namespace or cluster; empty for other paths.
	Scope string
	// DryRun is whether the request is a dry run.
	DryRun bool
	// Code is the HTTP status.
	Code int
	// Duration is how long the request took, or the start of a watch.
	Duration time.Duration
}

// ignore is the default Observer.
type ignore struct{}

// ObserveRequest implements Observer.
func (ignore) ObserveRequest(Observation) {}

// ObserveEtcd implements Observer.
func (ignore) ObserveEtcd(etcd.Call) {}

// ForgetCluster implements Observer.
func (ignore) ForgetCluster(*Endpoint) {}

// recorder reports the status code of a response as soon as it is sent.
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

// answered records the first status code.
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
