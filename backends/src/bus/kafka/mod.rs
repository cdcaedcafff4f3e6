//! The bus on Kafka.
