package mockserver

var (
	metaFaults, lifecycleFaults, stdioFaults, pingFaults, progressFaults, cancellationFaults,
		toolFaults, resourceFaults, promptFaults, contentFaults, completionFaults, loggingFaults, paginationFaults,
		clientFaults, schemaFaults []Fault
)
