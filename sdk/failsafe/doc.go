// Package failsafe limits the effects of failures: a panic does not end the process, and an error does not show secrets.
//
// # Panics
//
// controller-runtime recovers from panics in reconciles and webhooks. For everything else, there is Contain, once per process, and
// Recover, once per call, for goroutines of our own and for code with hostile input.
//
// Contain covers goroutines of the Kubernetes libraries that end with utilruntime.HandleCrash: event handlers (with mapping
// functions and predicates), decoders of watches and lists, informers, work queues, loops of package wait, event recorders and,
// in capi, the handlers of the API server. They continue with the next event, the next iteration or a new watch. It does not cover
// goroutines without HandleCrash: those of net/http, HTTP/2, gRPC and etcd, and their callbacks, such as resolvers and proxies;
// goroutines of golang.org/x/sync/errgroup, which re-panics; and fatal errors of the Go runtime (concurrent map writes, stack
// overflow, out of memory), which cannot be recovered. These end the process. Against fatal errors, input is limited.
//
// # Errors
//
// Requests may contain tokens, keys and passwords of users. An admission webhook, a policy, the API server's validation or a
// workload cluster may quote them in the response, and errors end up in conditions, events and logs. Errors of requests that
// write a Secret, or anything else that contains secrets, must go through Redacted. It is not for errors of other
// requests, whose text helps users.
//
// What does not belong here: retries, and what an error means for a reconcile (package step).
package failsafe
