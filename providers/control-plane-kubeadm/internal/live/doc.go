// Package live checks a snapshot against the API server before decisions that depend on it: the cache may be a minute old, and
// another leader may have acted.
//
// Every Machine is created and deleted after such a check, and so is every etcd member removed that was found by elimination.
// At rest, nothing is read live. Decisions do not belong here, only what they are based on.
package live
