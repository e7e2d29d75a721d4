// Package answer reads what users want the test extension to answer, from a ConfigMap per Cluster, and records calls in it.
//
// A key named like a hook has an Answer, as YAML; the key <hook>.calls has the Record of its calls, which the extension writes.
// Without a ConfigMap, all answers are successes, and nothing is recorded.
package answer
