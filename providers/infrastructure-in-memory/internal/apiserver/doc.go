// Package apiserver serves the Kubernetes API of simulated workload clusters, so that kubectl, client-go and
// controller-runtime can use them over TLS like real ones.
//
// It implements connections and certificates, authentication and authorization, the API protocol (verbs, patches,
// server-side apply, watches, tables, discovery, OpenAPI), and defaulting and validation of built-in kinds. It does not
// implement storage (package cloud), etcd's protocol (package etcd), or the controllers of a real cluster: Deployments do
// not create Pods, and a Pod runs if a client sets its status.
//
// # Request processing
//
//  1. Every cluster has an Endpoint: a listener with its own port. The port selects the cluster, the server name
//     (SNI) selects the certificate: etcd-<node> for the etcd member on that Node, anything else for the API
//     server (endpoint.go, listener.go).
//  2. All endpoints share one HTTP server. It applies the cluster's faults, authenticates and authorizes the
//     request (handler.go, authenticate.go, package access).
//  3. The path determines the resource, the method and the path's form the verb (request.go, resources.go).
//  4. Reads return stored objects byte for byte (read.go, watch.go), or as tables and metadata
//     (package columns, represent.go). Writes are decoded into the kind's Go type, which is the schema, changed,
//     defaulted, and their field managers are tracked (decode.go, write.go, patch.go, prepare.go,
//     package change).
//
// # Limitations
//
// There is no priority and fairness, no admission, no CustomResourceDefinitions and no conversion between versions.
// Responses are JSON or YAML; clients may send Protobuf, and get JSON.
package apiserver
