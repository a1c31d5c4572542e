package storetest

func lifeClauses() []clause { return nil }
