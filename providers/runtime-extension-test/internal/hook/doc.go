// Package hook has the handlers of the test extension, one per runtime hook. They answer as the ConfigMap of the Cluster says; see package
// answer.
package hook
