package comingfrom;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.redisson.api.RFencedLock;
import org.redisson.api.RedissonClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.ConditionalCheckFailedException;

/** Publishes reports under a fenced lock of Redisson; the table refuses one that is late. */
final class Reports {
    private final RedissonClient redisson;
    private final DynamoDbClient db;

    Reports(RedissonClient redisson, DynamoDbClient db) {
        this.redisson = redisson;
        this.db = db;
    }

    /** Writes a report, or returns false: others had the lock meanwhile, and have published. */
    boolean publish(String report, Supplier<String> text) {
        RFencedLock lock = redisson.getFencedLock("report:" + report);
        long token = lock.lockAndGetToken(); // renewed by the watchdog until it is unlocked
        try {
            return put(token, report, text.get());
        } finally {
            if (lock.isHeldByCurrentThread()) { // else unlock throws an IllegalMonitorStateException
                lock.unlock();
            }
        }
    }

    /** Runs a job unless another host is at it, and says whether it ran. */
    boolean nightly(Runnable job) throws InterruptedException {
        RFencedLock lock = redisson.getFencedLock("job:nightly");
        if (!lock.tryLock(0, TimeUnit.SECONDS)) {
            return false;
        }
        try {
            job.run();
            return true;
        } finally {
            if (lock.isHeldByCurrentThread()) {
                lock.unlock();
            }
        }
    }

    private boolean put(long token, String report, String text) {
        AttributeValue fence = AttributeValue.fromN(Long.toString(token));
        try {
            db.putItem(request -> request.tableName("reports")
                    .item(Map.of("ID", AttributeValue.fromS(report), "Text", AttributeValue.fromS(text), "Fence", fence))
                    .conditionExpression("attribute_not_exists(Fence) OR Fence <= :token")
                    .expressionAttributeValues(Map.of(":token", fence)));
            return true;
        } catch (ConditionalCheckFailedException late) {
            return false;
        }
    }
}
