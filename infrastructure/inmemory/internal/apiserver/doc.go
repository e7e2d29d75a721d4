// Package apiserver serves the Kubernetes API of simulated workload clusters, such that kubectl, client-go
// and controller-runtime talk to them over TLS as they do to real ones.
//
// What belongs here: connections and certificates, authentication and authorization, the protocol of the
// API (verbs, patches, server-side apply, watches, tables, discovery, OpenAPI) and what API servers do to
// objects of built-in kinds on the way in. What does not: how objects are kept (package cloud), etcd's
// protocol (package etcd), and what controllers of a real cluster would do: a Deployment has no Pods but
// those somebody makes, a Pod runs when somebody says so in its status.
//
// # A request's way
//
//  1. Every cluster has an Endpoint: a listener with a port of its own. The port tells the cluster, the
//     server name the client asks for tells the certificate: etcd-<node> is the etcd member there, all else
//     the API server (endpoint.go, listener.go).
//  2. All endpoints share one HTTP server. It lets the request suffer the cluster's faults, finds out who
//     asks and whether they may (handler.go, authenticate.go, authorize.go).
//  3. The path names a resource, the method and the path's form a verb (request.go, resources.go).
//  4. Reads hand out what the store holds, byte for byte (read.go, watch.go), or as tables and metadata
//     (table.go, represent.go). Writes are decoded into the kind's Go type, which is the schema, changed,
//     given defaults, and their field managers recorded (decode.go, write.go, patch.go, apply.go,
//     prepare.go).
//
// # What it does not do
//
// Requests are answered as they come: there is no priority, no limit in lists (all is returned), no
// admission, no CustomResourceDefinitions and no conversion between versions. Responses are JSON or YAML;
// clients that prefer Protobuf may send it and are answered in JSON.
package apiserver
