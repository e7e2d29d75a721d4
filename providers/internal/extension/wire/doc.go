// Package wire sends requests to servers of runtime extensions, and reads their responses: HTTPS with JSON.
//
// A request has what the protocol requires and nothing else: the object as JSON, its content type, the user agent, and the handler's
// timeout as the query parameter timeout. There is no client certificate and no token.
//
// Servers are not trusted. A call ends at its timeout, whatever the server does, and holds at most a bounded response in memory.
// Redirects are not followed, because they could lead to servers that are not configured. The text of an Error has no address, no time and
// nothing that the server sent, so that it can be shown in a condition, and is the same for each attempt; Error.Detail is for logs.
//
// Calls share connections, by the CA that they trust.
//
// What does not belong here: which extension is called (package extension), and what its failure means.
package wire
